"""P7: what one event costs with 1,000,000 open incidents, beside the same with 1,000.

Run: python benchmarks/open_incidents.py [--many 1000000] [--events 1000] [--folder DIR]

An event is what the store and the bus do for it, on two files in turns: the log entry is published and pulled, its
signal is looked up and finds its incident by the head, then it is counted (a repetition), or joins (the incident is
written with its outbox, which is drained), or opens a new incident; the delivery is acknowledged, and once in a
hundred events the tick asks what is due. Every commit of an accepted event is synced to the disk in both files.
"""

import argparse
import itertools
import random  # noqa: TID251 - seeded
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.adapters.bus.embedded import EmbeddedBus
from agent.adapters.bus.pulling import default_subscriptions
from agent.adapters.store.row_json import to_text
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SQL, SqliteStore, _incident_row, _signal_row, _timeline_rows
from agent.core.incident.incident import CorrelatedSignal, Event, Incident, incident_id
from agent.core.incident.phase import Phase
from agent.core.intake.signal import Signal, Source
from agent.ports.bus import Message, Topic
from agent.ports.store import Change, head_key

T0 = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
LINE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB. GPU 0 has a total capacity of 21.96 GiB "
    "of which 2.15 GiB is free. Process 1 has 19.81 GiB memory in use."
)
KINDS = ("counted", "joined", "opened")


class Clock:
    """A clock of the run's own; one second for each event."""

    def __init__(self) -> None:
        self.time = T0 + timedelta(days=1)

    def now(self) -> datetime:
        """Return the run's time."""
        return self.time


def service(number: int) -> str:
    return f"gemma-{number:07d}"


def incident(number: int) -> Incident:
    opened = T0 + timedelta(milliseconds=number)
    joined = CorrelatedSignal(
        signal="0" * 12, at=opened, class_="oom_load", signature="torch_oom", line=LINE, reason="first"
    )
    return Incident(
        id=incident_id("live", service(number), "r1", 1),
        service=service(number),
        platform="cloud_run",
        revision="r1",
        opened_at=opened,
        phase_at=opened,
        quiet_since=opened,
        due_at=opened + timedelta(days=30),
        signal_count=1,
        correlated=(joined,) * 4,
    )


def signal(key: str, number: int, at: datetime) -> Signal:
    return Signal(
        key=key, source=Source.APP_LOG, service=service(number), platform="cloud_run", revision="r1", at=at, text=LINE
    )


def change(of: Incident, key: str, number: int, at: datetime, *, heads: bool) -> Change:
    return Change(
        incident=of,
        heads=(head_key("live", of.service, None), head_key("live", of.service, "r1")) if heads else (),
        signals=(signal(key, number, at),),
        messages=(Message(id=f"{of.id}.{of.version + 1}.wake", topic=Topic.INCIDENTS, data='{"kind":"wake"}'),),
        events=(Event(at=at, phase=Phase.OPEN, what=f"heard: {LINE[:80]}"),),
    )


class Side:
    """One file with so many open incidents."""

    def __init__(self, path: Path, count: int) -> None:
        self.count = count
        self.new = 10_000_000
        self.clock = Clock()
        self.database = SqliteDatabase(path, Kind.STATE)
        self.store = SqliteStore(self.database)
        self.fill()
        self.bus = EmbeddedBus(self.database, self.clock, default_subscriptions())
        self.took: dict[str, list[float]] = {kind: [] for kind in KINDS}

    def fill(self) -> None:
        """Write the incidents as the store would, many in one transaction and in the order of their ids."""
        numbers = sorted(range(self.count), key=lambda n: incident_id("live", service(n), "r1", 1))
        for start in range(0, self.count, 20_000):
            with self.database.writing(durable=False) as db:
                for number in numbers[start : start + 20_000]:
                    one = incident(number).with_(version=1)
                    first = signal(f"first-{number}", number, one.opened_at)
                    whole = change(one, first.key, number, one.opened_at, heads=True)
                    db.execute(SQL["incident_create"], _incident_row(one, 0, to_text(one)))
                    db.execute(SQL["signal_add"], _signal_row(first, one.id))
                    db.execute(SQL["signal_count_up"], {"incident": one.id})
                    db.executemany(SQL["head_set"], [{"key": k, "incident": one.id} for k in whole.heads])
                    db.executemany(SQL["timeline_add"], _timeline_rows(whole, 1))
            if sys.stderr.isatty() or start % 200_000 == 0:
                print(f"filling: {start:,} of {self.count:,}", file=sys.stderr)

    def event(self, kind: str, chance: random.Random, turn: int) -> None:
        """Let one event through and note how long it took."""
        self.clock.time += timedelta(seconds=1)
        key = f"{kind}-{turn}"
        number = self.new if kind == "opened" else chance.randrange(self.count)
        self.new += kind == "opened"
        begun = time.perf_counter()
        self.bus.publish(Message(id=f"log-{key}", topic=Topic.LOG_EVENTS, data='{"textPayload":"' + LINE + '"}'))
        (arrival,) = self.bus.pull("sre-log-events-sub")
        self.handle(kind, key, number)
        self.bus.ack(arrival)
        if turn % 100 == 0:
            self.store.due(self.clock.time)
        self.took[kind].append(time.perf_counter() - begun)
        for wake in self.bus.pull("sre-incidents-sub", 10):
            self.bus.ack(wake)

    def handle(self, kind: str, key: str, number: int) -> None:
        """Do what the intake's stage asks of the store."""
        now = self.clock.time
        assert self.store.knows(key) is None
        home = self.store.head(head_key("live", service(number), "r1"))
        if home is None:
            assert self.store.head(head_key("live", service(number), None)) is None
            written = self.store.commit(change(incident(number), key, number, now, heads=True))
        else:
            held = self.store.load(home)
            if kind == "counted":
                self.store.accept(signal(key, number, now), home)
                return
            due = held.with_(signal_count=held.signal_count + 1, due_at=now + timedelta(days=30))
            written = self.store.commit(change(due, key, number, now, heads=False))
        for message in self.store.outbox(written.id):
            self.bus.publish(message)
            self.store.sent((message.id,))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=1_000, help="of each kind, on each side")
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        sides = [Side(Path(folder) / f"{count}.db", count) for count in (asked.few, asked.many)]
        chances = [random.Random(7), random.Random(7)]
        for turn in range(asked.events):
            for kind in KINDS:
                order = (0, 1) if turn % 2 else (1, 0)
                for side in order:
                    sides[side].event(kind, chances[side], turn)
        report(sides)
        for done in sides:
            done.database.close()
    return 0


def report(sides: list[Side]) -> None:
    few, many = sides
    print(f"one event, {few.count:,} open against {many.count:,} open, {len(few.took['opened'])} events of each kind")
    print(f"{'event':<10}{'mean us':>10}{'mean us':>10}{'ratio':>8}{'median us':>11}{'median us':>11}{'ratio':>8}")
    for kind in (*KINDS, "all"):
        took = [list(itertools.chain(*s.took.values())) if kind == "all" else s.took[kind] for s in sides]
        mean = [statistics.fmean(t) * 1e6 for t in took]
        half = [statistics.median(t) * 1e6 for t in took]
        cells = f"{mean[0]:>10.0f}{mean[1]:>10.0f}{mean[1] / mean[0]:>8.2f}"
        print(f"{kind:<10}{cells}{half[0]:>11.0f}{half[1]:>11.0f}{half[1] / half[0]:>8.2f}")


if __name__ == "__main__":
    raise SystemExit(main())
