"""A whole service in memory on a stepped clock, driven by hand; and a browser, one for the tests of a file."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent.app import App, build_app_in_memory
from agent.app.runtime_environment import RuntimeEnvironment
from agent.core.decision.decision import Channel, Choice, Decision, Person, Vote
from agent.core.incident.incident import Incident
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import feed, handlers, publish_example
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.outside import absent

ROOT = Path(__file__).resolve().parents[2]


class Journey:
    """One service and the people around it."""

    def __init__(self, installation: App, clock: SteppedClock) -> None:
        self.installation = installation
        self.clock = clock
        self.work = installation.worker(handlers(installation), threads=1).run_due
        self._since: datetime | None = None

    def go(self, seconds: float, *, step: float = 1.0) -> None:
        """Let time go by, doing what becomes due."""
        passed = 0.0
        while passed < seconds:
            self._since = feed(self.installation, self._since)
            self.work()
            on_tick(self.installation.contexts[Owner.TICK])
            self.work()
            self.clock.step(step)
            passed += step

    def until(self, reached: Callable[[Incident], bool], *, limit_s: float = 7200) -> Incident:
        """Go on until the first incident is as wanted."""
        for _ in range(int(limit_s)):
            self.go(1)
            found = self.incidents()
            if found and reached(found[0]):
                return found[0]
        message = f"not reached in {limit_s} s: {[(i.phase, i.ended_why) for i in self.incidents()]}"
        raise AssertionError(message)

    def incidents(self) -> tuple[Incident, ...]:
        """All incidents, oldest first."""
        found = self.installation.store.incidents(Query(limit=1000))
        return tuple(sorted(found, key=lambda i: (i.opened_at, i.id)))

    def answer(self, plan: str, answer: Choice = Choice.APPROVE, *, who: str = "ada", why: str = "") -> Decision | Vote:
        """Say yes or no."""
        word = DecisionRequest(
            plan=plan, answer=answer, by=Person(who=who, channel=Channel.COMMAND_LINE, verified=False), why=why
        )
        return plan_to_decision(self.installation.contexts[Owner.DECIDE], word)


@pytest.fixture
def journey(tmp_path: Path) -> Callable[[str], Journey]:
    """Make a journey of an example: its recorded events are published, nothing has been handled yet."""

    def make(
        example: str, *, environment: Callable[..., RuntimeEnvironment] | None = None, **overrides: object
    ) -> Journey:
        folder = ROOT / "examples" / example
        settings = read_settings({}, platform=f"rehearsal:{folder}", **overrides)
        clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
        parts = {"environment": environment(settings.with_(store=f"sqlite:{tmp_path}"), clock)} if environment else {}
        installation = build_app_in_memory(settings, clock=clock, state=tmp_path, **parts)
        publish_example(installation, folder)
        return Journey(installation, clock)

    return make


@pytest.fixture(scope="module")
def chromium():
    """The machine's Chromium; no longer than a file, for its driver keeps an event loop in the thread of all tests."""
    from tools.console_pictures import chromium

    with ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium())
        except FileNotFoundError:
            absent("Chromium: apt-get install --no-install-recommends chromium")
        yield browser


class Seen:
    """A browser page that notes what it asked for and what it complained about."""

    def __init__(self, chromium, *, width=1280, height=800, scripts=False, scheme="light"):
        self.context = chromium.new_context(
            viewport={"width": width, "height": height}, java_script_enabled=scripts, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.hosts, self.complaints = set(), []
        self.page.on("request", lambda r: self.hosts.add(urlsplit(r.url).netloc))
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.set_default_timeout(10_000)


@pytest.fixture
def open_page(chromium):
    """Makes browser pages, each with cookies of its own."""
    with ExitStack() as stack:

        def make(**more):
            seen = Seen(chromium, **more)
            stack.callback(seen.context.close)
            return seen

        yield make
