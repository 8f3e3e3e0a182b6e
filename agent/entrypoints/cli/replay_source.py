"""Where a replay's records come from: files, examples, standard input, Cloud Logging, or an incident."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from agent.core.change.request import ChangeRequest
from agent.core.service.services import Services
from agent.entrypoints.cli.local_settings import require_local_settings
from agent.entrypoints.cli.records import JsonRecord, Record, progress_on, records_of
from agent.errors import InputRejected
from agent.settings import EXAMPLES, Settings, read_settings

_SINCE = re.compile(r"^(\d{1,6})([smhd])$")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is replayed.

    Attributes:
        settings: Settings under which it is analysed.
        services: Watched services; None reads those of the settings.
        service: The service of plain logs that name none.
        example: The name of the recorded incident; empty for any other source.
        request: The change request that is replayed; it has no records.
    """

    records: Iterator[Record]
    settings: Settings
    services: Services | None
    service: str
    example: str = ""
    request: ChangeRequest | None = None


def open_sources(source: str, *, since: str | None, now: datetime) -> Iterator[Source]:
    """Open a source of the contract; a folder of examples gives one source for each.

    Args:
        source: ``file | folder | glob | example | folder of examples | - | logging:'FILTER' | incident:ID``. An
            example is a folder with a services.toml and an events.jsonl, or the bare name of a bundled one.
        since: How far back ``logging:`` reads.
        now: The time of the replay, UTC.

    Raises:
        InputRejected: There is no such source, or ``since`` is no span of time or given for another source.
        DependencyFailed: Cloud Logging did not answer.
    """
    back_s = since_s(since or "1h")
    if since is not None and not source.startswith("logging:"):
        raise InputRejected(
            f"--since {since!r} was not used", why=f"{source!r} is read whole", hint="give it with logging:'FILTER'"
        )
    if source.startswith("logging:"):
        return iter([_cloud(source.removeprefix("logging:"), back_s, now)])
    if source.startswith("incident:"):
        return iter([_history(source.removeprefix("incident:"))])
    path = found_example(source) or Path(source)
    if _is_example(path):
        return iter([_example(path)])
    inside = [item for item in sorted(path.iterdir()) if _is_example(item)] if path.is_dir() else []
    return map(_example, inside) if inside else iter([_files(source, path)])


def found_example(name: str) -> Path | None:
    """Return the folder of a recorded incident: a folder as given, or that of a bundled one; None where it is none.

    A bundled one goes by its bare name, or as in a checkout, ``examples/NAME``, wherever the command is called from.
    """
    given = Path(name)
    folder = given if given.exists() else EXAMPLES / name.removeprefix("examples/")
    return folder if _is_example(folder) else None


def _is_example(path: Path) -> bool:
    return (path / "services.toml").is_file() and (path / "events.jsonl").is_file()


def _example(path: Path) -> Source:
    name = path.resolve().name
    settings = read_settings(platform=f"rehearsal:{path}", services=path / "services.toml")
    records = records_of(str(path / "events.jsonl"), stdin=sys.stdin.buffer, progress=progress_on(sys.stderr))
    return Source(records=records, settings=settings, services=None, service=name, example=name)


def _files(source: str, path: Path) -> Source:
    records = records_of(source, stdin=sys.stdin.buffer, progress=progress_on(sys.stderr))
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
        raise InputRejected(f"--since {text!r} was not read", why="it is no span of time", hint="say 30m, 2h or 1d")
    return int(found[1]) * _UNIT_S[found[2]]


def _cloud(log_filter: str, since: float, now: datetime) -> Source:
    from agent.app.runtime_environment import cloud_log_entries

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
    from agent.app import build_app

    settings = read_settings()
    require_local_settings(
        settings,
        what=f"incident {incident_id!r} was not replayed",
        hint="in the cloud replay its log: sre-agent replay logging:'FILTER' --since 2h",
    )
    app = build_app(settings)
    incident = app.store.load(incident_id)
    if incident.request is not None:
        asked = incident.request
        return Source(records=iter(()), settings=settings, services=None, service=incident.service, request=asked)
    signals = app.store.signals(incident_id)
    records = (
        JsonRecord(origin=incident_id, line=n, value={"signal": s.model_dump(mode="json")})
        for n, s in enumerate(signals, start=1)
    )
    return Source(records=records, settings=settings, services=None, service=incident.service)
