"""A warmed process that forks journeys and has them killed, really, before or after a call: python kills.py < cases.

Reads one case a line, writes one outcome a line. The parent opens neither a database nor a channel, because neither may
cross a fork; each child opens its own.
"""

import faulthandler
import gc
import json
import os
import random
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog
from pydantic import TypeAdapter

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import default_subscriptions
from agent.adapters.bus.worker import Worker
from agent.adapters.clock import StoredClock
from agent.app import App, build_app
from agent.app.catalogues import read_capacity, read_services
from agent.app.runtime_environment import open_environment
from agent.app.stores import Stores, sqlite_stores
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.phase import Phase
from agent.core.plan.action import Action
from agent.core.plan.plan import Plan
from agent.core.planning.creation import creation
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import feed, handlers, publish_example
from agent.errors import SreError
from agent.ports.notifier import Notifier
from agent.ports.platform import NotDeployed, Order
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import ChangeAsked, request_change
from tests.firestore_emulator import client_of
from tests.leases import HELD
from tests.simulation.simulated.chaos import WRITES, Port
from tests.simulation.simulated.places import Remembered
from tests.temporary import in_memory

ROOT = Path(__file__).resolve().parents[2]
T0 = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
STEP_S = 60.0
LONGEST_S = 6 * 3600
BOUNDARIES = WRITES | {"bus.ack", "bus.retry"}
ACTIONS = TypeAdapter(tuple[Action, ...])
BY_HAND = "by-hand"
STUCK_S = 120.0  # a journey takes a second; one that is stuck ends and says where


class Journey:
    """One process of the service over the files of a folder; its time goes on where the last one's ended.

    Args:
        folder: Of the state.
        case: ``example``; ``actions`` that a person asks for where nothing is broken, or ``creates`` where they ask for
            the service of services.toml; ``before``, what was done to it by hand; ``policy``, the text of its file; ``answers``, what who says to a plan, one after the
            other; ``firestore`` (host and project) where the incidents are kept there; ``settings``, further ones.
        kill_at: Number of the call at which the process ends; None where it lives.
        before: Whether it ends before the call.
        notifiers: Who tells people; those of the settings when None.
    """

    def __init__(
        self,
        folder: Path,
        case: dict[str, Any],
        *,
        kill_at: int | None,
        before: bool,
        notifiers: Mapping[str, Notifier] | None = None,
    ) -> None:
        self.example = ROOT / "examples" / case["example"]
        self.actions = ACTIONS.validate_python(case.get("actions", ()))
        self.creates = bool(case.get("creates"))
        self.answers = [tuple(answer) for answer in case.get("answers", ())]
        self.heard = folder / "heard"  # how many of the answers; who heard nothing says the same again
        self.kill_at = kill_at
        self.before = before
        self.calls: list[str] = []
        self.of_people: list[int] = []  # numbers of the calls that are made for a person who waits
        self.documents: tuple[Any, ...] = ()
        self.time = folder / "time"
        first = not self.time.exists()
        began = T0 if first else datetime.fromisoformat(self.time.read_text())
        self.clock = SteppedClock(began)
        words = {"platform": f"rehearsal:{self.example}", "store": f"sqlite:{folder}", **case.get("settings", {})}
        if "policy" in case:
            words["policy"] = folder / "policy.toml"
            words["policy"].write_text(case["policy"])
        self.notifiers = notifiers
        self.settings = read_settings({}, **words, rehearse_by_fit=False)  # what nobody recorded is not known: undone
        self.installation = self._installed(self._stores(case))
        bus = Port(self.installation.bus, "bus", self.around)
        told: Any = handlers(self.installation)
        self.work = Worker(bus, told, quarantine=self.installation.quarantine, threads=1).run_due
        self.since: datetime | None = None
        if self.creates:
            (watched,) = self.installation.services.services
            self.actions = (creation(watched, FITS[self.example.name]),)
        if first:
            self._by_hand(ACTIONS.validate_python(case.get("before", ())))

    def run(self) -> dict[str, Any]:
        """Go on until everything has ended; say how it stands."""
        self.time.write_text(self.clock.now().isoformat())
        if not self.actions:
            publish_example(self.installation, self.example)
        while (self.clock.now() - T0).total_seconds() < LONGEST_S:
            self._people(self._ask)
            self.since = feed(self.installation, self.since)
            self.work()
            with suppress(SreError):
                on_tick(self.installation.contexts[Owner.TICK])
            self._people(self._person)
            self.work()
            incidents = self.installation.store.incidents(Query())
            if incidents and all(i.ended for i in incidents) and self._rests():
                break
            self.clock.step(STEP_S)
            self.time.write_text(self.clock.now().isoformat())
        return self._outcome()

    def around(self, label: str, call: Callable[[], Any]) -> Any:
        """Count a call, and end the process at the chosen one."""
        number = len(self.calls)
        self.calls.append(label)
        ends = number == self.kill_at
        if ends and self.before:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = call()
        if ends:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    def _rests(self) -> bool:
        waiting = self.installation.bus.waiting()  # type: ignore[attr-defined]
        return not self.installation.store.unsent() and not any(n for s, n in waiting.items() if "dead" not in s)

    def _people(self, act: Callable[[], None]) -> None:
        """Let people act, and note which calls were made meanwhile."""
        began = len(self.calls)
        act()
        self.of_people += range(began, len(self.calls))

    def _by_hand(self, actions: tuple[Action, ...]) -> None:
        rehearsal = self.installation.environment.rehearsal
        assert rehearsal is not None
        (watched,) = self.installation.services.services
        if actions:
            etag = rehearsal.describe(watched.name).etag
            name, revision = {"service": watched.name, "incident": BY_HAND, "effect_key": BY_HAND}, "by-hand-00099"
            rehearsal.apply(Order(**name, revision=revision, etag=etag, actions=actions, lease_end=HELD))

    def _ask(self) -> None:
        """Ask until it is recorded; who heard no answer asks the same again."""
        if not self.actions or self.installation.store.incidents(Query()):
            return
        (watched,) = self.installation.services.services
        asked = ChangeAsked(
            service=watched.name,
            actions=self.actions,
            why="asked and killed",
            by=Person(who="grace", channel=Channel.COMMAND_LINE, verified=False),
        )
        with suppress(SreError):
            request_change(self.installation.contexts[Owner.DECIDE], asked)

    def _person(self) -> None:
        for incident in self.installation.store.incidents(Query(open_only=True)):
            if incident.phase is Phase.ASKED and incident.plan is not None:
                if self.answers:
                    self._vote(incident.plan)
                    continue
                word = DecisionRequest(
                    plan=incident.plan.id,
                    answer=Choice.REJECT if incident.plan.by_person else Choice.APPROVE,
                    by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
                )
                with suppress(SreError):
                    plan_to_decision(self.installation.contexts[Owner.DECIDE], word)

    def _vote(self, plan: Plan) -> None:
        """Say what was not heard yet; who approves and who withdraws that is proved by the channel."""
        heard = int(self.heard.read_text()) if self.heard.exists() else 0
        for number, (who, answer) in enumerate(self.answers[heard:], start=heard + 1):
            word = DecisionRequest(
                plan=plan.id,
                answer=Choice.APPROVE,
                by=Person(who=who, channel=Channel.SLACK, verified=True),
                withdraw=answer == "withdraw",
            )
            plan_to_decision(self.installation.contexts[Owner.DECIDE], word)
            self.heard.write_text(str(number))

    def _outcome(self) -> dict[str, Any]:
        store = self.installation.store
        found = sorted(store.incidents(Query()), key=lambda i: i.id)
        stamps = {k: v for i in found for k, v in self._stamps(i.service).items() if v != BY_HAND}
        approved = sum(e.phase is Phase.APPROVED for i in found for e in store.timeline(i.id))
        return {
            "incidents": [[i.id, i.phase.value] for i in found],
            "signals": sorted(s.key for i in found for s in store.signals(i.id) if s.revision not in stamps),
            "stamps": len(stamps),
            "approved": approved,
            "unsent": list(store.unsent()),
            "record": sorted([row.kind, row.who] for row in self.installation.control.audit()),
            "stands": [self._stands(i.service) for i in found],
            "of_people": self.of_people,
            "took_s": (self.clock.now() - T0).total_seconds(),
            "calls": self.calls,
        }

    def _stamps(self, service: str) -> dict[str, str]:
        assert self.installation.environment.rehearsal is not None
        try:
            return dict(self.installation.environment.rehearsal.describe(service).stamps)
        except NotDeployed:
            return {}

    def _stands(self, service: str) -> list[Any] | None:
        """How the service is in the end: its generation tells how often it was changed; None where it is gone."""
        assert self.installation.environment.rehearsal is not None
        try:
            live = self.installation.environment.rehearsal.describe(service)
        except NotDeployed:
            return None
        return [live.generation, live.config.max_instances, live.ready]

    def _stores(self, case: dict[str, Any]) -> Stores:
        kept = sqlite_stores(self.settings, with_control=True)
        self.databases = [kept.store._database, kept.control._database]  # type: ignore[attr-defined]
        if "firestore" not in case:
            return kept
        from agent.adapters.store.firestore.cards import FirestoreCards
        from agent.adapters.store.firestore.control import FirestoreControlStore
        from agent.adapters.store.firestore.documents import Documents
        from agent.adapters.store.firestore.store import FirestoreStore

        host, project = case["firestore"]
        clients = {name: client_of(host, project, name) for name in ("(default)", "sre-control")}
        documents, control = (Documents(project, name, client=client) for name, client in clients.items())
        self.documents = (documents, control)
        return replace(
            kept,
            store=FirestoreStore(documents, self.clock),
            control=FirestoreControlStore(control),
            cards=FirestoreCards(documents),
        )

    def _installed(self, kept: Stores) -> App:
        clock = StoredClock(self.clock, self._now_and_then(kept.store.latest_time))
        services = read_services(self.settings)
        environment = open_environment(self.settings, services, clock)
        platform: Any = Port(environment.rehearsal, "platform", self.around)
        return build_app(
            self.settings,
            services=services,
            stores=replace(
                kept,
                store=self._port(kept.store, "store"),
                control=self._port(kept.control, "control"),
                cards=self._port(kept.cards, "cards"),
            ),
            clock=clock,
            environment=replace(environment, platform_of=lambda _: platform, wait_factor=1.0),
            bus=self._port(EmbeddedBus(self.databases[0], clock, default_subscriptions()), "bus"),
            capacity=FITS[self.example.name],
            notifiers=self.notifiers,
        )

    def _now_and_then(self, latest: Callable[[], datetime | None]) -> Callable[[], datetime | None]:
        """Read the highest stored time where five seconds went by, as the deployed functions do."""
        held: list[tuple[datetime, datetime | None]] = []

        def remembered() -> datetime | None:
            now = self.clock.now()
            if not held or (now - held[-1][0]).total_seconds() >= 5:
                held[:] = [(now, latest())]
            return held[-1][1]

        return remembered

    def _port(self, inner: Any, name: str) -> Any:
        return Port(inner, name, self.around)


FITS: dict[str, Any] = {}


def folder_for_a_while() -> tempfile.TemporaryDirectory[str]:
    """A folder for one case; a killed process loses nothing of a file that lies in memory."""
    return tempfile.TemporaryDirectory(prefix="kills-", dir=in_memory())


def warm(case: dict[str, Any]) -> None:
    """Go the way once in this process, so that children find everything imported and read; nothing stays open.

    Nobody watches this process while it forks: the thread that would is lost in the child, and waited for there.
    """
    faulthandler.dump_traceback_later(STUCK_S, exit=True, file=1)
    with folder_for_a_while() as name:
        journey = Journey(Path(name), case, kill_at=None, before=False)
        journey.run()
        for database in journey.databases:
            database.close()
    faulthandler.cancel_dump_traceback_later()


def in_a_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Run something in a forked child; None where it was killed, and where it broke or was stuck what it said of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        faulthandler.dump_traceback_later(STUCK_S, exit=True, file=writer)
        try:
            said = json.dumps(work())
        except BaseException:  # noqa: BLE001 - the parent wants to know of anything
            said = json.dumps({"broke": traceback.format_exc()[-1500:]})
        with os.fdopen(writer, "w") as out:
            out.write(said)
        os._exit(0)
    os.close(writer)
    if not select.select([reader], [], [], STUCK_S + 10)[0]:  # stuck in the fork itself, where nobody watches it
        os.kill(child, signal.SIGABRT)
    with os.fdopen(reader) as into:
        said = into.read()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if killed:
        return None
    return (
        json.loads(said)
        if status == 0
        else {"broke": said[-1500:] or f"it ended with code {os.waitstatus_to_exitcode(status)}"}
    )


def told(case: dict[str, Any]) -> dict[str, Any]:
    """Run one case: killed as it says, then started again until it is at its end.

    Args:
        case: ``example``, ``kills``: numbers of calls, each with whether the process ends before it, one for each
            start; where a start makes fewer calls than that it lives.
    """
    with folder_for_a_while() as name:
        folder = Path(name)
        for deaths, (at, before) in enumerate([*case.get("kills", ()), (None, False)]):
            outcome = in_a_child(lambda at=at, before=before: Journey(folder, case, kill_at=at, before=before).run())
            if outcome is not None:
                return {**outcome, "deaths": deaths}
        raise AssertionError("the last start is never killed")


def boundaries(outcome: dict[str, Any], *, of: tuple[str, ...] = ("",)) -> list[tuple[int, bool]]:
    """Every call that leaves something behind, before and after it, from a run without kills.

    Args:
        outcome: Of that run.
        of: What the labels begin with.
    """
    labels = enumerate(outcome["calls"])
    return [(n, b) for n, label in labels if label in BOUNDARIES and label.startswith(of) for b in (True, False)]


def again(seed: str, kill: tuple[int, bool], calls: int) -> list[tuple[int, bool]]:
    """One kill, and for every second seed another one at some call of the restart."""
    chance = random.Random(f"{seed} {kill}")
    return [kill] if chance.random() < 0.5 else [kill, (chance.randrange(calls), chance.random() < 0.5)]


def main() -> None:
    """Answer cases until there are no more."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    warmed: list[dict[str, Any]] = []
    for line in sys.stdin:
        case = json.loads(line)
        if case["example"] not in FITS:
            settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / case['example']}")
            FITS[case["example"]] = Remembered(read_capacity(read_services(settings)))
        of_its_kind = {key: value for key, value in case.items() if key not in {"kills", "firestore"}}
        if of_its_kind not in warmed:
            warmed.append(of_its_kind)
            warm(of_its_kind)
            gc.collect()
            gc.freeze()  # a child that collects would copy every page that it shares
            gc.disable()
        print(json.dumps(told(case)), flush=True)


if __name__ == "__main__":
    main()
