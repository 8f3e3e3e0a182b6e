"""A replay that only analyses: the whole path in memory, with a clock that does not wait."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.app import App, build_app_in_memory
from agent.core.change.request import ChangeRequest
from agent.core.incident.correlation import LOUD
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.ends import cloud_run_end, reports_sigterm
from agent.core.intake.json_fields import part
from agent.core.intake.log_sample import LogSample, PowerOfTwoCounter
from agent.core.intake.plain_log import signals_of_text
from agent.core.intake.signal import Signal
from agent.core.service.services import Services
from agent.entrypoints.cli.records import BadRecord, JsonRecord, Record, TextRecord
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import entry_message, handlers
from agent.errors import DependencyFailed, InputRejected
from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import entry_lines, stretch_lines
from agent.ports.bus import Message
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import Settings
from agent.stages.request_change import requested_incident
from agent.stages.shared.commit import save
from agent.stages.signal_to_incident import Opening, signal_to_incident

BATCH = 4096
MOST_STEPS = 200  # seconds of a replay until every incident has a plan or an end
APP_LOGS = ("%2Fstdout", "%2Fstderr", "/stdout", "/stderr")


@dataclass(kw_only=True)
class RecordFilter:
    """Passes on what tells something new.

    Attributes:
        read: Records so far.
        passed: Records passed on; the rest repeats them, or is an app's line that no rule knows.
        digests: Plain logs by the name of their file.
        renumbered: Those of which a line was taken apart: the places of their lines are not those of the file.
    """

    matcher: Matcher
    read: int = 0
    passed: int = 0
    digests: dict[str, LogSample] = field(default_factory=dict)
    renumbered: set[str] = field(default_factory=set)
    _tally: PowerOfTwoCounter = field(default_factory=PowerOfTwoCounter)

    def records(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records that tell something new, in order; plain text goes to ``digests``."""
        batch: list[JsonRecord] = []
        for record in records:
            self.read += 1
            if isinstance(record, TextRecord):
                self._digest(record)
                continue
            if isinstance(record, JsonRecord):
                batch.append(record)
                if len(batch) < BATCH:
                    continue
            yield from self._new(batch)
            batch = []
            if isinstance(record, BadRecord):
                yield record
        yield from self._new(batch)

    def _new(self, batch: list[JsonRecord]) -> Iterator[JsonRecord]:
        for record, kind in zip(batch, self._kinds(batch), strict=True):
            if kind is not None and self._tally.tells(kind):
                self.passed += 1
                yield record

    def _digest(self, record: TextRecord) -> None:
        digest = self.digests.setdefault(record.origin, LogSample(self.matcher))
        text = record.text.removesuffix("\n")
        lines = stretch_lines(text)
        if len(lines) != text.count("\n") + 1:
            self.renumbered.add(record.origin)
        digest.add(lines)

    def _kinds(self, entries: list[JsonRecord]) -> list[tuple[Any, ...] | None]:
        """Return what each entry is one of; None for an app's line that no rule knows."""
        texts = [" ".join(entry_lines(entry.value)) for entry in entries]
        signatures: dict[int, str] = {index: match.signature for index, match in self.matcher.scan(texts)}
        return [_kind(entry.value, signatures.get(n), texts[n]) for n, entry in enumerate(entries)]


def _kind(entry: Mapping[str, Any], signature: str | None, text: str) -> tuple[Any, ...] | None:
    name = entry.get("logName")
    if not isinstance(name, str):
        return (text,)
    labels = part(entry, "resource", "labels")
    place = (labels.get("service_name"), labels.get("revision_name"), labels.get("pod_name"), labels.get("node_id"))
    if cloud_run_end(text) is not None or reports_sigterm(text):  # each instance ends for itself, asked or not
        return (name, *map(str, place), str(part(entry, "labels").get("instanceId")), text[:200])
    if signature is None and name.endswith(APP_LOGS):
        return None
    if signature is None and entry.get("severity") not in LOUD:
        return (name, *map(str, place), str(part(entry, "httpRequest").get("status", "")), text[:200])
    return (name, *map(str, place), signature or text[:200])


REST = frozenset({Phase.ASKED, Phase.RESOLVED, Phase.ESCALATED, Phase.SELF_RECOVERED, Phase.CLOSED})


class SteppedClock:
    """A clock that advances only on request.

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
    record_filter: RecordFilter

    def feed_all(self, records: Iterable[Record], *, service: str) -> tuple[InputRejected, ...]:
        """Take records in; return those that could not be read, the others went on.

        Args:
            records: Of the source, in order.
            service: The service of plain logs.
        """
        bad: list[InputRejected] = []
        for record in self.record_filter.records(records):
            try:
                self._feed(record)
            except InputRejected as error:
                bad.append(error)
        for name, digest in self.record_filter.digests.items():
            self._feed_log(service, name, digest)
        return (*bad, *(self._quarantined()))

    def _feed_log(self, service: str, name: str, digest: LogSample) -> None:
        """Take a plain log in: as the instance's own log, and as signals."""
        known = name not in self.record_filter.renumbered
        lines = [(number if known else 0, line) for number, line in digest.numbered()]
        if self.app.environment.replay_logs is not None:
            self.app.environment.replay_logs.add(service, lines, self.clock.now())
        reading = self.app.reading(self.run)
        named = reading if reading.service else replace(reading, service=service)
        text, numbers = "\n".join(line for _, line in lines), [number for number, _ in lines]
        found = signals_of_text(text, named=name, reading=named, at=self.clock.now(), numbers=numbers)
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

    def ask(self, request: ChangeRequest) -> None:
        """Ask once more for a recorded change, of the service as it is now; nothing of it can be approved."""
        context, now = self.app.contexts[Owner.INCIDENT], self.clock.now()
        anew = request.with_(target=None, superseded=(), waits_for=None)
        platform = context.rules.services.service(anew.service).platform
        life = requested_incident(anew, platform, now).with_(run=self.run)
        save(context, life, f"{anew.asker} asked for a change: {anew.why}", now=now, by=anew.asker)
        self.drive()

    def settle(self) -> tuple[Incident, ...]:
        """Let time go by until every incident has a plan or an end; return them, oldest first."""
        for _ in range(MOST_STEPS):
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
                why="a dependency of the replay failed; see the warnings above",
                hint="fix what the warnings name, then replay again",
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
        yield Analysis(run=run, app=app, clock=clock, drive=driver.run_due, record_filter=RecordFilter(matcher=known))
