"""R9: a storm of one fault is one incident; a million lines at full size are in benchmarks/storm.py."""

from collections.abc import Iterator
from datetime import UTC, datetime

from agent.core.service.services import Services
from agent.entrypoints.cli.analysis import analysis
from agent.entrypoints.cli.records import JsonRecord, Record, TextRecord
from agent.settings import read_settings
from tests.counts import tries

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
LINE = (
    "(EngineCore pid={}) ERROR 11-21 03:00:{:02d} [core.py:1510] torch.OutOfMemoryError: CUDA out of memory. "
    "Tried to allocate 2.62 GiB. GPU 0 has a total capacity of 21.96 GiB of which 2.15 GiB is free."
)
COUNT = tries(20_000, ci=100_000, soak=100_000)


def entries() -> Iterator[Record]:
    for n in range(COUNT):
        value = {
            "logName": "projects/p/logs/run.googleapis.com%2Fstderr",
            "insertId": f"{n:024x}",
            "timestamp": f"2026-11-21T02:{n // 60_000 % 60:02d}:{n // 1000 % 60:02d}.{n % 1000:06d}Z",
            "resource": {"type": "cloud_run_revision", "labels": {"service_name": "s", "revision_name": "s-1"}},
            "textPayload": LINE.format(n % 4, n % 60),
        }
        yield JsonRecord(origin="storm", line=n + 1, value=value)


def lines() -> Iterator[Record]:
    for n in range(COUNT // 500):
        text = "".join(LINE.format(k % 4, k % 60) + "\n" for k in range(500))
        yield TextRecord(origin="storm.log", text=text, part=n, last=n == COUNT // 500 - 1)


def replayed(records: Iterator[Record]):
    with analysis(read_settings({}, platform="none"), run="r", now=NOW, services=Services(services=())) as told:
        bad = told.feed_all(records, service="s")
        return told, told.settle(), bad


def test_a_storm_of_entries_is_one_incident_and_few_are_passed_on() -> None:
    """Under CI 100,000 LogEntries: one incident, and only the powers of two went through the whole path."""
    told, incidents, bad = replayed(entries())
    assert (len(incidents), bad) == (1, ())
    assert told.record_filter.read == COUNT
    assert told.record_filter.passed <= 20


def test_a_storm_of_raw_lines_is_one_incident() -> None:
    """Under CI 100,000 lines of a plain log: one incident; the log is kept in bounded size."""
    told, incidents, bad = replayed(lines())
    assert (len(incidents), bad) == (1, ())
    (digest,) = told.record_filter.digests.values()
    assert digest.total == COUNT
    assert len(digest.lines()) < 3000


def test_hostile_distinct_lines_open_at_most_one_incident() -> None:
    """All different, all shouting: still at most one incident, and bounded."""
    text = (f"ERROR {n:032x} CUDA {n * 7919:x} memory {n * 104729:x}\n" for n in range(COUNT))
    records = (TextRecord(origin="h.log", text=line, part=n, last=False) for n, line in enumerate(text, 1))
    told, incidents, _ = replayed(iter(records))
    assert len(incidents) <= 1
    (digest,) = told.record_filter.digests.values()
    assert len(digest.lines()) < 3000
