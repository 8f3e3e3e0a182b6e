"""One seeded driver for the whole service: clock, bus, platform, people, model, crashes and pauses."""

import hashlib
import heapq
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from agent.adapters.clock import StoredClock
from agent.adapters.store.row_json import from_us
from agent.app import App, build_app
from agent.app.runtime_environment import RuntimeEnvironment
from agent.app.stores import Stores, memory_stores
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.incident.times import Times
from agent.core.plan.action import Action
from agent.entrypoints.pubsub.handlers import HANDLER_OF, on_tick
from agent.entrypoints.pubsub.settle import settle
from agent.entrypoints.service import entry_message
from agent.errors import SreError
from agent.ports.bus import Delivery, Message, Outcome
from agent.ports.control import KillSwitch
from agent.ports.stage_context import RECEIVER_OF, Owner
from tests.simulation.simulated import places
from tests.simulation.simulated.chaos import EFFECTS, WRITES, Died, Fault, Port, Weather, broken
from tests.simulation.simulated.people import People
from tests.simulation.simulated.platform import BAD, Fate, Mutation, SimulatedPlatform

T0 = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
KEY = b"k" * 32
DECIDERS = frozenset({Owner.DECIDE, Owner.DECISION})
TICK_S = 60
STORM_S = 2 * 3600  # faults stop after that; then everything must come to its end
LONGEST_S = 5 * 86_400
DEEPEST = 2  # processes that stand still at once


class Violation(AssertionError):
    """A promise was broken."""


@dataclass
class Process:
    """One process: its clock may lie, and after a crash another one takes its place."""

    number: int
    starts: int = 0
    offset_s: float = 0.0
    app: Any = None

    def now(self, true: datetime) -> datetime:
        return true + timedelta(seconds=self.offset_s)


@dataclass
class Letter:
    """A message on its way."""

    message: Message
    number: int
    attempt: int = 0
    done: bool = False


@dataclass(order=True)
class Planned:
    """Something that happens at a time."""

    at: datetime
    order: int
    act: Callable[[], None] = field(compare=False)


@dataclass(frozen=True)
class Stored:
    """What the incidents' database holds that a tick looks for; a new one holds nothing."""

    latest: datetime | None = None
    first_due: datetime | None = None
    unsent: bool = False


@dataclass
class Course:
    """What a run is to be like; drawn from the seed, or given by a test.

    Attributes:
        at_call: Faults at exact calls, by their number from 0.
        fates: What becomes of the changes, in order, by kind; then good.
        answers: What people say to the plans, in order; drawn where there is none left.
        asks: Changes that people ask for: after how many seconds, and what.
        voters: How many people must approve a change.
        commands: Whether people roll back, close, finish their tasks and ask for another plan.
    """

    stories: tuple[str, ...] = ("probe",)
    weather: Weather = field(default_factory=Weather)
    at_call: dict[int, Fault] = field(default_factory=dict)
    fates: dict[str, list[Fate]] = field(default_factory=dict)
    answers: list[bool] = field(default_factory=list)
    asks: list[tuple[float, Action]] = field(default_factory=list)
    voters: int = 1
    duplicates: float = 0.0
    lost_acks: float = 0.0
    disorder_s: float = 0.0
    steps: bool = False
    switch: bool = False
    by_hand: bool = False
    model: bool = False
    deleted: bool = False
    spare: bool = False
    yes: float = 1.0
    verify_s: float = 180.0
    cool_off_s: float = 86_400.0
    commands: bool = False

    @property
    def times(self) -> Times:
        """How long the parts of a life may take."""
        return Times(verify_s=self.verify_s, cool_off_s=self.cool_off_s)


def drawn(seed: int) -> Course:
    """Return the course of a seed."""
    chance = random.Random(f"course {seed}")
    rate = chance.choice([0.0, 0.01, 0.02, 0.05])
    bad = chance.choice([0.0, 0.5, 0.9])
    story = [chance.choice([("probe",), ("context",), ("oom",), ("probe", "oom"), ("context", "oom")])][0]
    return Course(
        stories=story,
        weather=Weather(
            dies=rate * chance.random(),
            fails=rate * chance.random(),
            lost=chance.choice([0.0, 0.05]) if rate else 0.0,
            pauses=chance.choice([0.0, 0.01, 0.03]),
        ),
        fates={kind: [_fate(chance, bad if kind == "apply" else bad / 3) for _ in range(6)]
               for kind in ("apply", "restore", "shift")},
        duplicates=chance.choice([0.0, 0.3]),
        lost_acks=chance.choice([0.0, 0.1]),
        disorder_s=chance.choice([0.0, 5.0, 120.0]),
        steps=chance.random() < 0.4,
        switch=chance.random() < 0.25,
        by_hand=chance.random() < 0.2,
        model=chance.random() < 0.3,
        deleted=chance.random() < 0.05,
        spare=chance.random() < 0.4,
        yes=chance.choice([1.0, 0.8, 0.3]),
        verify_s=chance.choice([60.0, 180.0]),
        commands=chance.random() < 0.4,
        cool_off_s=chance.choice([2, 6, 24]) * 3600.0,
    )  # fmt: skip


def _fate(chance: random.Random, bad: float) -> Fate:
    return chance.choice(BAD) if chance.random() < bad else Fate.GOOD


class Simulation:
    """One run; the same seed and course give the same run, call by call.

    Args:
        seed: Decides everything that the course leaves open.
        course: Drawn from the seed when None.
    """

    def __init__(self, seed: int, course: Course | None = None) -> None:
        self.seed = seed
        self.course = course or drawn(seed)
        self.chance = random.Random(f"run {seed}")
        self.true = T0
        self.calls = self.answered = 0
        self.labels: list[str] = []
        self.depth = 0
        self.paused_at_brink = 0
        self.story: list[tuple[Any, ...]] = []
        self.heap: list[Planned] = []
        self.orders = 0
        self.published = 0
        self.stores = memory_stores(self._true_clock())
        self.store, self.control = self.stores.store, self.stores.control
        self._read, self._read_at = Stored(), (0, 0)
        self.switch_off_at = T0
        self.history: list[tuple[datetime, Incident]] = []
        self.open: set[str] = set()
        self.commits: list[tuple[int, Phase]] = []
        self.touched_by_hand: dict[str, datetime] = {}
        self.hand = random.Random(f"hand {seed}")
        self.acting = random.Random(f"acting {seed}")
        self.platform = SimulatedPlatform(lambda: self.true, self._fated, self._rollout_s, self._changing)
        self.processes = [Process(n) for n in range(DEEPEST + 1)]
        self.running: Process | None = None
        self.people = People(self)
        self.entries: dict[str, str] = {}
        self.spoken: set[str] = set()
        for process in self.processes:
            self._start(process)
        self._open()
        for after_s, value in self.course.asks:
            self.plan(after_s, lambda value=value: self.people.ask_for(value))

    # -- the run -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to the end and check every promise.

        Raises:
            Violation: A promise was broken.
        """
        from tests.simulation.simulated.promises import at_the_end

        before = structlog.get_config()
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
        try:
            while self._more():
                self._next()
            at_the_end(self)
        except (AssertionError, SreError) as error:
            raise Violation(f"seed {self.seed} at call {self.calls}, {self.true:%H:%M:%S}: {error!r}") from error
        finally:
            structlog.configure(**before)

    @property
    def lines(self) -> list[str]:
        """What happened, one line each."""
        return [f"{(at - T0).total_seconds():.3f} {' '.join(map(str, what))}" for at, *what in self.story]

    @property
    def digest(self) -> str:
        """One word for everything that happened, call by call."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()

    @property
    def storm(self) -> bool:
        """Whether faults still happen."""
        return (self.true - T0).total_seconds() < STORM_S

    def plan(self, in_s: float, act: Callable[[], None]) -> None:
        """Let something happen later."""
        self.orders += 1
        heapq.heappush(self.heap, Planned(self.true + timedelta(seconds=in_s), self.orders, act))

    def note(self, *what: object) -> None:
        """Add to the trace."""
        self.story.append((self.true, self.depth, *what))

    def _more(self) -> bool:
        if (self.true - T0).total_seconds() > LONGEST_S:
            return False
        return self.storm or bool(self.open) or self._stored().unsent or len(self.heap) > 1

    def _next(self) -> None:
        planned = heapq.heappop(self.heap)
        self.true = max(self.true, planned.at)
        planned.act()

    def _others_go_on(self, for_s: float) -> None:
        """Let the world go on while the running process stands still."""
        until = self.true + timedelta(seconds=for_s)
        running, self.depth = self.running, self.depth + 1
        try:
            while self.heap and self.heap[0].at <= until:
                self._next()
        finally:
            self.running, self.depth = running, self.depth - 1
        self.true = max(self.true, until)

    def on_process(self, work: Callable[[App], Any]) -> Any:
        """Run something in the process of this depth; where it dies, another takes its place.

        Raises:
            Died: It died.
        """
        process = self.processes[self.depth]
        before, self.running = self.running, process
        try:
            return work(process.app)
        except Died:
            self.note("died", process.number)
            self._start(process)
            raise
        finally:
            self.running = before

    # -- faults ------------------------------------------------------------------------------------------------------

    def around(self, label: str, call: Callable[[], Any]) -> Any:
        """Make a call of a port, or what the weather makes of it."""
        number, self.calls = self.calls, self.calls + 1
        self.labels.append(label)
        fault = self.course.at_call.get(number) or self._weather(label)
        self.note(number, label, fault or "")
        if fault is Fault.DIES_BEFORE:
            raise Died(label)
        if fault is Fault.FAILS:
            raise broken(label)
        try:
            answer = self._after_a_pause(label, call) if fault is Fault.PAUSES else call()
        finally:
            self.answered += 1
        if label == "store.commit":
            self._committed(answer)
        if fault is Fault.DIES_AFTER:
            raise Died(label)
        if fault is Fault.LOST:
            raise broken(label)
        return answer

    def _after_a_pause(self, label: str, call: Callable[[], Any]) -> Any:
        if self.depth == DEEPEST:
            return call()
        brink = label in EFFECTS
        self.paused_at_brink += brink
        try:
            self._others_go_on(self.chance.choice([1, 30, 130, 700]))
            return call()
        finally:
            self.paused_at_brink -= brink

    def _weather(self, label: str) -> Fault | None:
        if not self.storm:
            return None
        return self.course.weather.fault(self.chance.random(), writes=label in WRITES)

    def _committed(self, incident: Incident) -> None:
        from tests.simulation.simulated.promises import at_a_commit

        self.commits.append((self.calls, incident.phase))
        self.note("committed", incident.id, incident.version, incident.phase)
        self.history.append((self.true, incident))
        (self.open.discard if incident.ended else self.open.add)(incident.id)
        at_a_commit(self, incident)
        if incident.phase is Phase.ASKED and incident.plan is not None:
            self.people.asked(incident.plan.id)
        if self.course.commands:
            self.people.acted_on(incident)

    # -- processes ---------------------------------------------------------------------------------------------------

    def _true_clock(self) -> Any:
        simulation = self

        class Clock:
            def now(self) -> datetime:
                return simulation.true

        return Clock()

    def _ticks(self) -> float:
        """What counts seconds on every machine, whatever its clock says."""
        return (self.true - T0).total_seconds()

    def _start(self, process: Process) -> None:
        process.starts += 1
        simulation = self

        class Clock:
            def now(self) -> datetime:
                return process.now(simulation.true)

        def port(inner: Any, name: str) -> Any:
            return Port(inner, name, self.around)

        platform = port(self.platform, "platform")
        clock = StoredClock(Clock(), self.store.latest_time, monotonic=self._ticks)
        process.app = build_app(
            places.SETTINGS,
            services=places.watched(),
            stores=Stores(
                store=port(self.store, "store"),
                control=port(self.control, "control"),
                cards=port(self.stores.cards, "cards"),
                quarantine=self.stores.quarantine,
                clock=clock,
            ),
            environment=RuntimeEnvironment(platform_of=lambda _: platform, logs=port(self.people, "logs")),
            bus=port(self, "bus"),
            rules=self.people.knowing(places.known(self.course.times, voters=self.course.voters)),
            model=port(self.people, "model") if self.course.model else None,
            notifiers={"card": port(self.people, "notifier")},
            receipt_key=KEY,
            holder=f"process {process.number}.{process.starts}",
        )

    # -- the bus -----------------------------------------------------------------------------------------------------

    def publish(self, message: Message) -> str:
        """Carry a message: at least once, in no order."""
        copies = 1 + (self.chance.random() < self.course.duplicates) if self.storm else 1
        for _ in range(copies):
            self.published += 1
            late = self.chance.random() * self.course.disorder_s if self.storm else 0.0
            letter = Letter(message=message, number=self.published)
            self.plan(0.01 + late, lambda letter=letter: self._deliver(letter))
        return str(self.published)

    def _deliver(self, letter: Letter) -> None:
        if letter.done:
            return
        letter.attempt += 1
        self.plan(600, lambda: self._deliver(letter))  # the acknowledgement deadline
        delivery = Delivery(
            topic=letter.message.topic,
            message_id=str(letter.number),
            data=letter.message.data.encode(),
            attributes=dict(letter.message.attributes),
            subscription=f"{letter.message.topic}-sub",
            attempt=letter.attempt,
            published_at=self.true,
        )
        try:
            outcome = self.on_process(lambda app: self._received(app, delivery))
        except Died:
            return
        self.note("delivered", letter.message.id, outcome)
        if outcome is Outcome.RETRY:
            wait = min(600.0, 10.0 * 2 ** min(letter.attempt, 6))
            self.plan(wait, lambda: self._deliver(letter))
        elif not (self.storm and self.chance.random() < self.course.lost_acks):
            letter.done = True

    def _received(self, app: App, delivery: Delivery) -> Outcome:
        assert delivery.topic is not None
        owner = RECEIVER_OF[delivery.topic]
        try:
            HANDLER_OF[owner](app.contexts[owner], delivery)
        except Exception as error:  # noqa: BLE001 - as the functions do
            outcome = settle(error, delivery, self.stores.quarantine)
            self._report(delivery, error, outcome)
            return outcome
        return Outcome.ACK

    def _report(self, delivery: Delivery, error: Exception, outcome: Outcome) -> None:
        self.note("failed", delivery.message_id, type(error).__name__, outcome)
        bug = error.__cause__ if isinstance(error.__cause__, AssertionError) else error
        if not isinstance(bug, SreError):
            raise Violation(f"a bug in the handling of {delivery.data[:80]!r}: {bug!r}") from error

    # -- the world ---------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        for story in self.course.stories:
            name, revision, config, ready = places.opening(story)
            self.platform.add(name, config, revision, ready=bool(ready), spare=self.course.spare)
            for event in places.events(story):
                self.plan(self.chance.random() * 20, lambda event=event: self._happens(event))
            if self.course.by_hand:
                self.plan(self.chance.random() * STORM_S, lambda name=name: self._by_hand(name))
            if self.course.deleted:
                self.plan(self.chance.random() * STORM_S, lambda name=name: self._gone(name))
        if self.course.steps:
            for process in self.processes:
                for _ in range(3):
                    self.plan(self.chance.random() * STORM_S, lambda p=process: self._step(p))
        if self.course.switch:
            self._switch_later(on=True)
        self.plan(TICK_S, self._tick)

    def _happens(self, event: dict[str, Any], revision: str | None = None) -> None:
        at = self.true.isoformat().replace("+00:00", "Z")
        entry = places.stamped(event, at, self.published + 1, revision)
        self.entries[entry["insertId"]] = json.dumps(entry)
        self.publish(entry_message(entry))

    def _by_hand(self, name: str) -> None:
        if not self.platform.services[name].deleted:
            self.note("by hand", name)
            how = self.hand.choice(["edits", "edits", "pins", "remakes"])
            if self.platform.by_hand(name, how):
                self.touched_by_hand[name] = self.true

    def _gone(self, name: str) -> None:
        self.note("deleted", name)
        self.touched_by_hand[name] = self.true
        self.platform.services[name].deleted = True

    def _step(self, process: Process) -> None:
        process.offset_s = self.chance.choice([-600.0, 0.0, 600.0])
        self.note("clock", process.number, process.offset_s)

    def _switch_later(self, *, on: bool) -> None:
        self.plan(self.chance.random() * STORM_S / 3, lambda: self._switch(on=on))

    def _switch(self, *, on: bool) -> None:
        self.note("switch", on)
        self.control.set_kill_switch(KillSwitch(on=on, by="ana", why="drill", at=self.true))
        if on or self.storm:
            self._switch_later(on=not on)

    def _tick(self) -> None:
        self.plan(TICK_S, self._tick)
        for name, service in self.platform.services.items():
            self._speaks(name, service.latest)
        stored = self._stored()
        now = max(self.processes[self.depth].now(self.true), stored.latest or self.true)
        if not stored.unsent and (stored.first_due is None or stored.first_due > now):
            return
        try:
            self.on_process(lambda app: on_tick(app.contexts[Owner.TICK]))
        except Died:
            return
        except SreError as error:
            if isinstance(error.__cause__, AssertionError):
                raise Violation(f"a bug in the tick: {error.__cause__!r}") from error
            self.note("tick failed", type(error).__name__)

    def _stored(self) -> Stored:
        """Return what a tick would find; only calls change it, so that it is read once after each."""
        if self._read_at != (self.calls, self.answered):
            self._read_at = (self.calls, self.answered)
            ((first_due,),) = self.store._database.ask("SELECT min(due_at) FROM incidents")  # type: ignore[attr-defined]
            self._read = Stored(
                latest=self.store.latest_time(),
                first_due=from_us(first_due) if first_due is not None else None,
                unsent=bool(self.store.unsent(1)),
            )
        return self._read

    def _speaks(self, name: str, revision: str) -> None:
        """A revision of ours that failed says so in its log, once."""
        if revision in self.spoken or not self.platform.went_wrong(revision):
            return
        self.spoken.add(revision)
        story = next(s for s in self.course.stories if places.opening(s)[0] == name)
        self._happens(places.events(story)[0], revision)

    def _fated(self, kind: str) -> Fate:
        left = self.course.fates.get(kind)
        fate = left.pop(0) if left else Fate.GOOD
        if kind == "shift" and fate not in {Fate.GOOD, Fate.FAILS}:
            fate = Fate.GOOD
        self.note("fate", kind, fate)
        return fate

    def _rollout_s(self) -> float:
        return self.chance.choice([0.0, 60.0, 300.0, 800.0])

    def _changing(self, mutation: Mutation) -> None:
        from tests.simulation.simulated.promises import at_a_change

        self.note("changes", mutation.kind, mutation.service, mutation.key)
        at_a_change(self, mutation)
