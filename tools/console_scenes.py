"""The console at every moment at which a page of it can be looked at: lives of examples, a seeded installation."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agent.app import App, build_app_in_memory
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.command import Command
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetFlag
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.serve import claim, local_server
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import feed, handlers, publish_example
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import Settings, read_settings
from agent.stages.incident_command import CommandRequest, carry_out
from agent.stages.observe_services import observe_services
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import ChangeAsked, request_change
from tests.agent.entrypoints.console.every_page import PAGES, every_page
from tests.agent.entrypoints.console.scenes import Stage, a_stage
from tests.journeys.staging import staged_example

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples"
PROBE, CONTEXT = "gemma4-26b-l4-startup-probe", "gemma4-26b-l4-context-refused"
MEMORY, PERSON = "gemma4-31b-l4-oom", "gemma4-12b-aca-a100-fp8-kv"
FROZEN: Final = """
[[freezes]]
name = "weekend"
weekly = ["Fri 18:00 - Mon 08:00"]
zone = "Europe/Berlin"
stops = "approvals"
reason = "nobody is on call"
owner = "Ada"
"""

DIFFERS: Final = "the service was changed since the plan was made: --max-num-seqs is 32, not 8"

Moment = tuple[str, Mapping[str, str]]
"""Where a console is served, and the pages to look at before time goes on: path by name of the screen."""


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve a console on a free port of this machine; yields its address."""
    with claim(0) as held:
        server = local_server(app, at=held)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.close()


@dataclass
class Rehearsal:
    """One example as a service in memory, on a clock that is moved by hand."""

    app: App
    clock: SteppedClock
    since: datetime | None = None

    def until(self, reached: Callable[[Incident], bool], *, limit_s: int = 7200) -> Incident:
        """Go on, second by second, until the newest incident is as wanted."""
        work = self.app.worker(handlers(self.app), threads=1).run_due
        found: tuple[Incident, ...] = ()
        for _ in range(limit_s):
            self.since = feed(self.app, self.since)
            work()
            on_tick(self.app.contexts[Owner.TICK])
            work()
            found = self.app.store.incidents(Query(limit=1))
            if found and reached(found[0]):
                return found[0]
            self.clock.step(1)
        raise AssertionError(f"not reached: {[(i.phase, i.ended_why) for i in found]}")

    def answer(self, incident: Incident, choice: Choice, why: str = "") -> Incident:
        """Answer its plan."""
        assert incident.plan is not None
        who, plan, channel = "ada", incident.plan.id, Channel.CONSOLE
        word = DecisionRequest(plan=plan, answer=choice, by=Person(who=who, channel=channel, verified=False), why=why)
        plan_to_decision(self.app.contexts[Owner.DECIDE], word)
        return self.app.store.load(incident.id)

    def expired(self) -> Incident:
        """Let every plan that is offered expire, until the incident has ended."""
        while not (found := self.until(lambda i: i.phase is Phase.ASKED or i.ended)).ended:
            self.clock.step(3600)
        return found

    def act(self, incident: Incident, command: Command, text: str) -> Incident:
        """Do something about it as a person."""
        digest = incident.plan.digest if incident.plan is not None else None
        asked = CommandRequest(
            incident=incident.id,
            command=command,
            by=Person(who="ada", channel=Channel.CONSOLE, verified=False),
            text=text,
            plan_digest=digest,
        )
        return carry_out(self.app.contexts[Owner.DECIDE], asked)

    def pages(self) -> Any:
        """Return its console."""
        return make_app(
            self.app.contexts[Owner.DECIDE],
            settings=self.app.settings,
            operator="ada",
            wait_factor=self.app.environment.wait_factor,
        )


@contextmanager
def rehearsal(source: Path | str, *, policy: str = "", quiet: bool = False) -> Iterator[tuple[Rehearsal, str]]:
    """Yield an example at its beginning, and where its console is served.

    Args:
        source: Its folder, or its name.
        policy: What stands in its policy file; empty is the default policy.
        quiet: Whether its recorded events stay unpublished, so that nothing is wrong.
    """
    folder = EXAMPLES / source
    with tempfile.TemporaryDirectory() as state:
        more = {}
        if policy:
            more["policy"] = Path(state, "policy.toml")
            more["policy"].write_text(policy)
        clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
        app = build_app_in_memory(
            read_settings({}, platform=f"rehearsal:{folder}", **more), clock=clock, state=Path(state)
        )
        if not quiet:
            publish_example(app, folder)
        scene = Rehearsal(app, clock)
        with served(scene.pages()) as url:
            yield scene, url


def recovery() -> Iterator[Moment]:
    """A startup probe that gives up too early: from nothing to the report."""
    with rehearsal(PROBE) as (scene, url):
        yield url, {"incidents-none": "/?still=1"}
        asked = scene.until(_asked)
        assert asked.plan is not None
        observe_services(scene.app.contexts[Owner.TICK])
        here, plan = f"/incidents/{asked.id}?still=1", f"/plans/{asked.plan.id}"
        yield url, {"incident-asked": here, "incidents-asked": "/?still=1", "plan": plan}
        scene.answer(asked, Choice.APPROVE)
        yield url, {"incident-approved": here, "answer-approved": f"{plan}/answer?still=1"}
        scene.until(lambda i: i.phase is Phase.APPLYING and i.execution is not None)
        yield url, {"incident-applying": here}
        scene.clock.step(20)
        scene.until(lambda i: i.phase is Phase.VERIFYING and i.verification is not None)
        yield url, {"incident-verifying": here}
        scene.until(lambda i: i.phase is Phase.RESOLVED)
        yield (
            url,
            {"incident-resolved": here, "incidents-over": "/?still=1", "report": f"/incidents/{asked.id}/report.html"},
        )


def escalation() -> Iterator[Moment]:
    """A model that is too large: changes are stopped, a plan is rejected, the next expires, a person closes it."""
    with rehearsal(MEMORY) as (scene, url):
        asked = scene.until(_asked)
        here = f"/incidents/{asked.id}?still=1"
        yield url, {"incident-asked-memory": here}
        control = scene.app.contexts[Owner.DECIDE].control_store()
        switch = KillSwitch(on=True, by="grace", why="Cloud Run answers nobody in us-central1", at=scene.clock.now())
        control.set_kill_switch(switch)
        yield url, {"incident-asked-stopped": here, "kill-switch-on": "/kill-switch"}
        control.set_kill_switch(switch.with_(on=False, why="it answers again"))
        scene.answer(asked, Choice.REJECT, "the images are needed")
        yield url, {"incident-rejected": here}
        scene.until(lambda i: (i.phase is Phase.ASKED and i.plans_made > 1) or i.ended)
        yield url, {"incident-task": here}
        ended = scene.expired()
        yield url, {"incident-escalated": here}
        scene.act(ended, Command.CLOSE, "the service moves to two cards, ticket 4711")
        yield url, {"incident-closed": here}


def failure() -> Iterator[Moment]:
    """A staged change whose new revision does not come up: it is rolled back."""
    with tempfile.TemporaryDirectory() as folder, rehearsal(staged_example(Path(folder), good=False)) as (scene, url):
        asked = scene.until(_asked)
        scene.answer(asked, Choice.APPROVE)
        here = f"/incidents/{asked.id}?still=1"
        scene.until(lambda i: i.phase is Phase.ROLLING_BACK)
        yield url, {"incident-rolling-back": here}
        scene.until(_asked)
        yield url, {"incident-after-roll-back": here}


def task() -> Iterator[Moment]:
    """A trouble that no change of ours mends: a task for a person."""
    with rehearsal(PERSON) as (scene, url):
        asked = scene.until(_asked)
        here = f"/incidents/{asked.id}?still=1"
        yield url, {"task-asked": here}
        scene.answer(asked, Choice.APPROVE)
        yield url, {"task-approved": here}
        scene.until(lambda i: i.phase is Phase.VERIFYING)
        yield url, {"task-taken": here}
        scene.until(lambda i: i.ended)
        yield url, {"task-done": here}


def frozen() -> Iterator[Moment]:
    """A plan in a freeze window."""
    with rehearsal(PROBE, policy=FROZEN) as (scene, url):
        yield url, {"incident-asked-frozen": f"/incidents/{scene.until(_asked).id}?still=1"}


def request() -> Iterator[Moment]:
    """A change that a person asks for."""
    with rehearsal(CONTEXT, quiet=True) as (scene, url):
        asked = ChangeAsked(
            service="gemma4-26b-qat-l4",
            actions=(SetFlag(name="max-model-len", value="32768"),),
            why="longer documents",
            by=Person(who="ada", channel=Channel.CONSOLE, verified=False),
        )
        request_change(scene.app.contexts[Owner.DECIDE], asked)
        yield url, {"request-asked": f"/incidents/{scene.until(_asked).id}?still=1"}


def moments() -> Iterator[Moment]:
    """The phases that a life leaves at once where nothing is slow, each written as its stage writes it."""
    moved: dict[str, Callable[[Stage], Incident]] = {
        "incident-open": lambda s: s.open(),
        "incident-diagnosed": lambda s: s.diagnosed(s.open()),
        "incident-planned": lambda s: s.planned(s.diagnosed(s.open())),
        "incident-refused": lambda s: s.move(
            s.said(s.waiting(), Choice.APPROVE), Phase.REFUSED, "refused", ended_why=DIFFERS
        ),
        "incident-rolled-back": lambda s: s.rolled_back(
            s.verifying(s.applying(s.said(s.waiting(), Choice.APPROVE)), good=False)
        ),
        "incident-expired": lambda s: s.move(s.waiting(), Phase.EXPIRED, "nobody answered"),
        "incident-superseded": lambda s: s.move(s.waiting(), Phase.SUPERSEDED, "more was learned"),
        "incident-self-recovered": lambda s: s.move(
            s.waiting(), Phase.SELF_RECOVERED, "recovered", ended_why="the service answered a request"
        ),
        "request-withdrawn": lambda s: s.move(
            s.requested(), Phase.WITHDRAWN, "withdrawn", ended_why="ada took it back: not needed any more"
        ),
    }
    for name, move in moved.items():
        stage = a_stage()
        incident = move(stage)
        with served(make_app(stage.world, settings=Settings(platform="cloud_run:example"), operator="ada")) as url:
            yield url, {name: f"/incidents/{incident.id}?still=1"}


def installation() -> Iterator[Moment]:
    """The pages beside incidents, of an installation in which much has happened."""
    with tempfile.TemporaryDirectory() as folder, served(every_page(Path(folder))) as url:
        yield url, PAGES


SCENES: Final[tuple[Callable[[], Iterator[Moment]], ...]] = (
    recovery, escalation, failure, task, frozen, request, moments, installation,
)  # fmt: skip


def _asked(incident: Incident) -> bool:
    return incident.phase is Phase.ASKED
