"""Records of a source for classify and eval: JSON lines, a JSON array, or plain text, told apart by content."""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.errors import InputRejected
from agent.failures.entry_text import entry_lines, log_lines

_OTHER_KEYS = frozenset(
    {"kind", "involvedObject", "message", "msg", "Msg", "Log_s", "Log", "state", "status", "alerts"}
    | {"lastState", "containerStatuses", "conditions", "terminalCondition", "error"}
)
"""Any of them makes an object without ``log`` a record of another platform: an event, a pod, a resource, a row."""

_RECORD_KEYS = frozenset({"id", "log"}), frozenset({"insertId"})
"""A line of a plain log has none of these sets of keys: one object that has makes its source JSON lines."""

_LOG_ENTRY_KEYS = frozenset({"textPayload", "jsonPayload", "protoPayload", "insertId", "logName", "httpRequest"})


@dataclass(frozen=True, kw_only=True)
class Record:
    """One thing to classify.

    Attributes:
        id: As given; None where the row had none.
        log: Text out of its envelope.
        platform: As given, or read from the envelope; None if not known.
        whole_log: The text may be the instance's own log, that is more than one line.
        error: Why the row cannot be classified; empty if it can.
        row: The row as it came, for labels.
    """

    id: Any
    log: str = ""
    platform: str | None = None
    whole_log: bool = False
    error: str = ""
    row: Mapping[str, Any] = field(default_factory=dict)


def read_source(source: str) -> str:
    """The text of a file, or of standard input for ``-``; bytes that are no UTF-8 become U+FFFD.

    Raises:
        InputRejected: It cannot be read.
    """
    if source == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return Path(source).read_bytes().decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise InputRejected(
            f"{source!r} was not read",
            why=str(getattr(error, "strerror", None) or error),
            mend="give a file that exists and may be read, or - for standard input",
        ) from error


def read_records(text: str, *, name: str) -> Iterator[Record]:
    """Take a source apart into records, in order.

    Args:
        text: The whole source. A JSON array gives one record an element; JSON lines give one a line, where at
            least half of the first lines are JSON objects, or one of them is a record beyond doubt; anything
            else is plain text, one record.
        name: Id of a plain-text record.
    """
    text = text.removeprefix("\ufeff")
    rows = _json_rows(text)
    if rows is None:
        lines = log_lines(text)
        yield Record(id=name, log="\n".join(lines), whole_log=len(lines) > 1)
        return
    yield from rows


def _json_rows(text: str) -> Iterator[Record] | None:
    head = text.lstrip()[:1]
    if head == "[":
        whole = _load(text)
        if isinstance(whole, list) and (not whole or any(isinstance(item, dict) for item in whole)):
            return (_record(item) for item in whole)
        return None
    lines = [line for line in text.split("\n") if line.strip()]  # U+2028 and its like stand raw in JSON strings
    if head == "{":
        whole = _load(text)
        if isinstance(whole, dict):
            return iter([_record(whole)])
    sample = lines[:20]
    objects = [value for value in map(_load, sample) if isinstance(value, dict)]
    sure = any(keys <= value.keys() for value in objects for keys in _RECORD_KEYS)
    if not objects or (2 * len(objects) < len(sample) and not sure):
        return None
    return (_line_record(line) for line in lines)


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _line_record(line: str) -> Record:
    try:
        return _record(json.loads(line, parse_constant=_no_number))
    except RecursionError:
        return Record(id=None, error="is nested too deeply")
    except ValueError as error:
        return Record(id=None, error=f"is no JSON object: {error}")


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _record(row: object) -> Record:
    if not isinstance(row, dict):
        return Record(id=None, error=f"is a JSON {type(row).__name__}, want an object")
    if "log" in row and not (_LOG_ENTRY_KEYS & row.keys() and not isinstance(row["log"], str)):
        return _log_record(row)
    if (_LOG_ENTRY_KEYS | _OTHER_KEYS) & row.keys():
        lines = entry_lines(row)
        return Record(
            id=row.get("insertId", row.get("id")),
            log="\n".join(lines),
            platform=platform_of(row),
            whole_log=len(lines) > 1,
            row=row,
        )
    return Record(id=row.get("id"), error="has neither 'log' nor the payload of a LogEntry")


def _log_record(row: dict[str, Any]) -> Record:
    log = row["log"]
    if isinstance(log, list) and all(isinstance(item, str) for item in log):
        log = "\n".join(log)
    if isinstance(log, dict):
        log = "\n".join(entry_lines(log))
    if not isinstance(log, str):
        return Record(id=row.get("id"), error=f"'log' is a JSON {type(log).__name__}, want a string")
    lines = log_lines(log)
    platform = row.get("platform")
    return Record(
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
