"""Where a replay's records come from: a file, a folder of examples, standard input, Cloud Logging, or an incident."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from agent.core.services import Services
from agent.entrypoints.here import on_this_machine
from agent.entrypoints.records import JsonRecord, Progress, Record, records_of
from agent.errors import InputRejected
from agent.settings import Settings, read_settings

_SINCE = re.compile(r"^(\d{1,6})([smhd])$")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SHOW_FROM_BYTES = 4_000_000  # shorter sources are done before a person has read a line about them


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is replayed.

    Attributes:
        settings: Settings under which it is analysed.
        services: Watched services; None reads those of the settings.
        service: The service of plain logs that name none.
    """

    records: Iterator[Record]
    settings: Settings
    services: Services | None
    service: str


def open_source(source: str, *, since: str | None, now: datetime) -> Source:
    """Open a source of the contract.

    Args:
        source: ``file | folder of examples/ | - | logging:'FILTER' | incident:ID``.
        since: How far back ``logging:`` reads.
        now: The time of the replay, UTC.

    Raises:
        InputRejected: There is no such source.
        DependencyFailed: Cloud Logging did not answer.
    """
    if source.startswith("logging:"):
        return _cloud(source.removeprefix("logging:"), since_s(since or "1h"), now)
    if source.startswith("incident:"):
        return _history(source.removeprefix("incident:"))
    path = Path(source)
    if path.is_dir() and (path / "services.toml").is_file():
        settings = read_settings(platform=f"rehearsal:{path}", services=path / "services.toml")
        events = path / "events.jsonl"
        found = records_of(str(events), stdin=sys.stdin.buffer, progress=_progress)
        return Source(records=found, settings=settings, services=None, service=path.name)
    records = records_of(source, stdin=sys.stdin.buffer, progress=_progress)
    settings = read_settings()
    name = re.sub(r"[^a-z0-9-]+", "-", path.stem.lower()).strip("-") if source != "-" else "stdin"
    if settings.services is not None:
        return Source(records=records, settings=settings, services=None, service=name or "log")
    return Source(
        records=records,
        settings=settings.with_(platform="none"),
        services=Services(services=()),
        service=name or "log",
    )


def since_s(text: str) -> float:
    """Return seconds of a span such as ``30m``, ``2h``, ``1d``.

    Raises:
        InputRejected: It is none.
    """
    found = _SINCE.match(text)
    if found is None:
        raise InputRejected(f"--since {text!r} was not read", why="it is no span of time", mend="say 30m, 2h or 1d")
    return int(found[1]) * _UNIT_S[found[2]]


def _cloud(log_filter: str, since: float, now: datetime) -> Source:
    from agent.bootstrap import cloud_log_entries

    settings = read_settings()
    entries = cloud_log_entries(settings, log_filter, after=now - timedelta(seconds=since))
    records = (JsonRecord(origin="logging", line=n, value=entry) for n, entry in enumerate(entries, start=1))
    known = settings.services is not None
    return Source(
        records=records,
        settings=settings if known else settings.with_(platform="none"),
        services=None if known else Services(services=()),
        service="logging",
    )


def _history(incident_id: str) -> Source:
    from agent.bootstrap import embedded

    settings = read_settings()
    on_this_machine(
        settings,
        what=f"incident {incident_id!r} was not replayed",
        mend="in the cloud replay its log: sre-agent replay logging:'FILTER' --since 2h",
    )
    installation = embedded(settings)
    incident = installation.store.load(incident_id)
    signals = installation.store.signals(incident_id)
    records = (
        JsonRecord(origin=incident_id, line=n, value={"signal": s.model_dump(mode="json")})
        for n, s in enumerate(signals, start=1)
    )
    return Source(records=records, settings=settings, services=None, service=incident.service)


def _progress(progress: Progress) -> None:
    """Say how far a long source has been read; on the line of its own that people see."""
    if progress.read_bytes < SHOW_FROM_BYTES:
        return
    done = f" of {progress.total_bytes / 1e6:,.0f} MB" if progress.total_bytes else ""
    print(
        f"\r{progress.origin}: {progress.read_bytes / 1e6:,.0f}{done} read, {progress.records:,} records",
        end="" if progress.total_bytes and progress.read_bytes < progress.total_bytes else "\n",
        file=sys.stderr,
        flush=True,
    )
