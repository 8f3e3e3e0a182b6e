"""A replay that only analyses: the whole path in memory, with a clock that does not wait."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.app import App, build_app_in_memory
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.log_sample import LogSample
from agent.core.intake.plain_log import signals_of_text
from agent.core.intake.signal import Signal
from agent.core.service.services import Services
from agent.entrypoints.cli.coalescing import Coalescing
from agent.entrypoints.cli.records import BadRecord, JsonRecord, Record
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import entry_message, handlers
from agent.errors import DependencyFailed, InputRejected
from agent.ports.bus import Message
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import Settings
from agent.stages.signal_to_incident import Opening, signal_to_incident

REST = frozenset({Phase.ASKED, Phase.RESOLVED, Phase.ESCALATED, Phase.SELF_RECOVERED})


class SteppedClock:
    """A clock that goes on only when it is told to.

    Args:
        start: Its first time, UTC.
    """

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        """Return the present time."""
        return self._now

    def step(self, seconds: float) -> None:
        """Let time go by."""
        self._now += timedelta(seconds=seconds)


@dataclass(kw_only=True)
class Analysis:
    """One analysis: feed it records, then let it settle.

    Attributes:
        run: The id of the replay; its incidents never join the live ones.
    """

    run: str
    app: App
    clock: SteppedClock
    drive: Callable[[], int] = field(repr=False)
    coalescing: Coalescing

    def feed_all(self, records: Iterable[Record], *, service: str) -> tuple[InputRejected, ...]:
        """Take records in; return those that could not be read, the others went on.

        Args:
            records: Of the source, in order.
            service: The service of plain logs.
        """
        bad: list[InputRejected] = []
        for record in self.coalescing.records(records):
            try:
                self._feed(record)
            except InputRejected as error:
                bad.append(error)
        for name, digest in self.coalescing.digests.items():
            self._feed_log(service, name, digest)
        return (*bad, *(self._quarantined()))

    def _feed_log(self, service: str, name: str, digest: LogSample) -> None:
        """Take a plain log in: as the instance's own log, and as what it says."""
        text = "\n".join(digest.lines())
        if self.app.environment.kept is not None:
            self.app.environment.kept.add(service, text, self.clock.now())
        reading = self.app.reading(self.run)
        named = reading if reading.service else replace(reading, service=service)
        found = signals_of_text(text, named=name, reading=named, at=self.clock.now())
        self.take(tuple(s for s in found if isinstance(s, Signal)))

    def _feed(self, record: Record) -> None:
        if isinstance(record, JsonRecord) and set(record.value) == {"signal"}:
            self.take((Signal.model_validate(record.value["signal"]).with_(run=self.run),))
        else:
            self.app.bus.publish(message_of(record, {"run": self.run}))
            self.drive()

    def _quarantined(self) -> tuple[InputRejected, ...]:
        return tuple(
            InputRejected("a record became no signal", why=row["reason"], hint="see docs/intake.md for what is read")
            for row in self.app.quarantine.rows()
        )

    def take(self, signals: tuple[Signal, ...]) -> None:
        """Take signals in that were made from a plain log."""
        for signal in signals:
            signal_to_incident(self.app.contexts[Owner.INTAKE], signal, Opening(notify=False))
        self.drive()

    def settle(self, *, steps: int = 200) -> tuple[Incident, ...]:
        """Let time go by until every incident has a plan or an end; return them, oldest first."""
        for _ in range(steps):
            self.drive()
            on_tick(self.app.contexts[Owner.TICK])
            self.drive()
            found = self.incidents()
            rested = all(incident.phase in REST and incident.received == incident.diagnosed_count for incident in found)
            if rested and not any(self.app.queue.waiting().values()):
                break
            self.clock.step(1)
        self._all_taken()
        return self.incidents()

    def _all_taken(self) -> None:
        """Refuse to call a replay done while events of it wait for another try."""
        left = sum(count for name, count in self.app.queue.waiting().items() if "dead-letter" not in name)
        if left:
            raise DependencyFailed(
                f"{left} events of the replay were not taken",
                why="a part that the replay needs failed; its warnings stand above",
                hint="mend that part, then replay again",
            )

    def incidents(self) -> tuple[Incident, ...]:
        """Return the incidents of this run, oldest first."""
        found = self.app.store.incidents(Query(run=self.run, limit=1000))
        return tuple(sorted(found, key=lambda i: (i.opened_at, i.id)))


def message_of(record: Record, attributes: Mapping[str, str]) -> Message:
    """Return a record as the message that its source would publish.

    Raises:
        InputRejected: The record could not be read.
    """
    if isinstance(record, BadRecord):
        raise record.error
    body = record.value if isinstance(record, JsonRecord) else {"textPayload": record.text}
    return entry_message(body, attributes=attributes)


@contextmanager
def analysis(settings: Settings, *, run: str, now: datetime, services: Services | None = None) -> Iterator[Analysis]:
    """Make an analysis in memory; what it writes is gone afterwards.

    Args:
        settings: Which platform and services; the store is not touched.
        run: The id of the replay.
        now: When the replay begins, UTC.
        services: The watched services; read from the settings when None.
    """
    with TemporaryDirectory(prefix="sre-replay-") as folder:
        clock = SteppedClock(now)
        app = build_app_in_memory(settings, clock=clock, state=Path(folder), services=services)
        known = app.rules.matcher
        driver = app.worker(handlers(app), threads=1)
        yield Analysis(run=run, app=app, clock=clock, drive=driver.run_due, coalescing=Coalescing(matcher=known))
