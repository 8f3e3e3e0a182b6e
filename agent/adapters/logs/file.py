"""Recorded logs as a Logs port: the instance's own log comes from text that was kept."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from agent.ports.logs import InstanceLog, LogLine

_ISO = re.compile(r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+(.*)$", re.DOTALL)
_VLLM = re.compile(r"^(?:\([^)]{1,60}\) )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) ")


class FileLogs:
    """Serves recorded logs.

    Args:
        recordings: The logs of a service; asked at each call, because a rehearsal makes new ones.
    """

    def __init__(self, recordings: Callable[[str], tuple[InstanceLog, ...]]) -> None:
        self._recordings = recordings

    def instance_log(
        self, service: str, *, revision: str | None, instance: str | None, until: datetime, limit: int = 2000
    ) -> InstanceLog | None:
        """Return the newest recording that fits, or None.

        A recording without a revision or an instance fits every one. Lines after ``until`` are left out. Of more
        than ``limit`` lines the first and the last half are kept: the start tells the phase, the end the cause.
        """
        fits = [
            log
            for log in self._recordings(service)
            if _same(log.revision, revision) and _same(log.instance, instance) and log.lines
        ]
        if not fits:
            return None
        newest = max(fits, key=lambda log: log.lines[0].at)
        return newest.with_ends([line for line in newest.lines if line.at <= until], limit=limit)


def _same(recorded: str | None, wanted: str | None) -> bool:
    return recorded is None or wanted is None or recorded == wanted


def timed_lines(text: str, *, since: datetime) -> tuple[LogLine, ...]:
    """Return the lines of a recorded log with their times, in the order of the text.

    Args:
        text: LogEntry JSON by line, lines that open with an ISO 8601 time, or a program's plain output; vLLM's own
            ``MM-DD HH:MM:SS`` counts as UTC in the year of ``since``.
        since: When the instance started, aware; the time of lines above the first that tells one. A line without a
            time has that of the line above it.
    """
    lines: list[LogLine] = []
    at = since
    for raw in text.splitlines():
        if not raw.strip():
            continue
        stamp, said = _read(raw, since)
        at = max(at, stamp) if stamp is not None else at
        lines.append(LogLine(at=at, text=said))
    return tuple(lines)


def _read(raw: str, since: datetime) -> tuple[datetime | None, str]:
    if raw.startswith("{"):
        entry = _entry(raw)
        if entry is not None:
            return entry
    iso = _ISO.match(raw)
    if iso:
        stamp = _moment(iso[1])
        return (stamp, iso[2]) if stamp is not None else (None, raw)
    own = _VLLM.match(raw)
    if own:
        return _in_year(own, since), raw
    return None, raw


def _entry(raw: str) -> tuple[datetime | None, str] | None:
    try:
        entry = json.loads(raw)  # not strict: a log line; its text is taken, whatever stands twice
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, Mapping) or not isinstance(entry.get("timestamp"), str):
        return None
    payload = entry.get("jsonPayload")
    said = entry.get("textPayload") or (payload.get("message") if isinstance(payload, Mapping) else None)
    return (_moment(entry["timestamp"]), said) if isinstance(said, str) else None


def _moment(word: str) -> datetime | None:
    try:
        stamp = datetime.fromisoformat(word)
    except ValueError:
        return None
    return stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)


def _in_year(own: re.Match[str], since: datetime) -> datetime | None:
    month, day, hour, minute, second = (int(part) for part in own.groups())
    try:
        return datetime(since.year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
