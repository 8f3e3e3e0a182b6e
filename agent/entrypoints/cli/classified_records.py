"""The inputs of classify and eval: the records of a source as texts, with the platform that they name."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent.core.intake.classify_text import classify_text
from agent.core.intake.log_sample import LogSample
from agent.entrypoints.cli.records import BadRecord, JsonRecord, Record, TextRecord
from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import entry_lines, log_lines, stretch_lines

TEXT_LIMIT = 1_048_576  # bytes of one stretch of a plain log
ROW_LIMIT = 16_777_216  # bytes of one JSON row, which may carry a whole log
WHOLE_CHARS = 16_000_000  # a longer plain log is read as its first, last and telling lines

_OTHER_KEYS = frozenset(
    {"kind", "involvedObject", "message", "msg", "Msg", "Log_s", "Log", "state", "status", "alerts"}
    | {"lastState", "containerStatuses", "conditions", "terminalCondition", "error"}
)
"""Any of them makes an object without ``log`` a record of another platform: an event, a pod, a resource, a row."""

_LOG_ENTRY_KEYS = frozenset({"textPayload", "jsonPayload", "protoPayload", "insertId", "logName", "httpRequest"})


@dataclass(frozen=True, kw_only=True)
class ClassifyInput:
    """One thing to classify.

    Attributes:
        id: As given; the file's name for a plain log; None where the row had none.
        place: Where it stands, such as "events.json, line 3"; what people read where there is no id.
        log: Text out of its envelope.
        platform: As given, or read from the envelope; None if not known.
        whole_log: The text may be the instance's own log, that is more than one line.
        error: Why the row cannot be classified; empty if it can.
        unread: Whether the error is of a whole file, not of one row.
        row: The row as it came, for labels.
    """

    id: Any
    place: str = ""
    log: str = ""
    platform: str | None = None
    whole_log: bool = False
    error: str = ""
    unread: bool = False
    row: Mapping[str, Any] = field(default_factory=dict)


def finding_of(record: ClassifyInput, matcher: Matcher) -> Finding:
    """Classify one input."""
    return classify_text(record.log, matcher=matcher, whole_log=record.whole_log, platform=record.platform)


def inputs_of(records: Iterable[Record], *, matcher: Matcher) -> Iterator[ClassifyInput]:
    """Yield one input for each JSON record and each plain log, in order and in bounded memory.

    Args:
        records: Of one or more sources; the stretches of a plain log stand one behind the other.
        matcher: Chooses the telling lines of a plain log of more than ``WHOLE_CHARS`` characters.
    """
    log: LogSample | None = None
    for record in records:
        if isinstance(record, TextRecord):
            if record.part == 0 and record.last:
                yield _plain(record.origin, log_lines(record.text))
                continue
            log = log or LogSample(matcher, whole_chars=WHOLE_CHARS)
            log.add(stretch_lines(record.text.removesuffix("\n")))
            if record.last:
                yield _plain(record.origin, log.lines())
                log = None
        elif isinstance(record, JsonRecord):
            yield replace(_of_row(dict(record.value)), place=f"{record.origin}, line {record.line}")
        else:
            yield _bad(record)


def _plain(name: str, lines: Iterable[str]) -> ClassifyInput:
    found = list(lines)
    return ClassifyInput(id=name, log="\n".join(found), whole_log=len(found) > 1)


def _bad(record: BadRecord) -> ClassifyInput:
    if not record.line:
        return ClassifyInput(id=record.origin, error=record.error.why, unread=True)
    return ClassifyInput(id=None, place=record.origin, error=f"line {record.line}: {record.error.why}")


def _of_row(row: dict[str, Any]) -> ClassifyInput:
    if "log" in row and not (_LOG_ENTRY_KEYS & row.keys() and not isinstance(row["log"], str)):
        return _log_row(row)
    if (_LOG_ENTRY_KEYS | _OTHER_KEYS) & row.keys():
        lines = entry_lines(row)
        return ClassifyInput(
            id=row.get("insertId", row.get("id")),
            log="\n".join(lines),
            platform=platform_of(row),
            whole_log=len(lines) > 1,
            row=row,
        )
    return ClassifyInput(id=row.get("id"), error="has neither 'log' nor the payload of a LogEntry")


def _log_row(row: dict[str, Any]) -> ClassifyInput:
    log = row["log"]
    if isinstance(log, list) and all(isinstance(item, str) for item in log):
        log = "\n".join(log)
    if isinstance(log, dict):
        log = "\n".join(entry_lines(log))
    if not isinstance(log, str):
        return ClassifyInput(id=row.get("id"), error=f"'log' is a JSON {type(log).__name__}, want a string")
    lines = log_lines(log)
    platform = row.get("platform")
    return ClassifyInput(
        id=row.get("id"),
        log="\n".join(lines),
        platform=platform if isinstance(platform, str) else None,
        whole_log=len(lines) > 1,
        row=row,
    )


def platform_of(entry: Mapping[str, Any]) -> str | None:
    """The platform that a LogEntry's resource names, or None."""
    resource = entry.get("resource")
    kind = resource.get("type") if isinstance(resource, Mapping) else None
    if not isinstance(kind, str):
        return None
    if kind.startswith("cloud_run"):
        return "cloud_run"
    if kind.startswith("k8s_"):
        return "kubernetes"
    return {"tpu_worker": "tpu_vm", "gce_instance": "host", "aws_ec2_instance": "ec2"}.get(kind)
