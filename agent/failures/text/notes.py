"""Notes: lines, and records of structured loggers, whose level says that nothing is wrong."""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import is_note, is_warning, names_exception, warns_of_failure

_FIELD = re.compile(r"(?!(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL): )[A-Za-z_][\w.@-]{0,60}: ")
_NOTED = re.compile(r"(?:level|lvl|severity|levelname): (?:info|debug|trace|notice)\s*$", re.IGNORECASE)
"""A field of a structured record, as it is written below its message, and the level among them."""
_CALL = re.compile(r'\bFile "[^"]{1,400}", line \d{1,7}, in ')
_OF_VLLM = re.compile(r"(?:\([^()]{1,40}\) )?(?:DEBUG|INFO|WARNING) \d\d-\d\d \d\d:\d\d:\d\d \[")


def only_info(lines: Sequence[str]) -> bool:
    """Whether every line says of itself that it is INFO, DEBUG or a mild warning, and none names an exception.

    A warning is mild where no word of it speaks of failure; a traceback that somebody logs as notes is no note.
    """
    written = [at for at, line in enumerate(lines) if line.strip()]
    noted = _noted_records(lines)
    return bool(written) and all((at in noted or _is_calm(lines[at])) and not _raises(lines[at]) for at in written)


def notes_of(lines: Sequence[str]) -> frozenset[int]:
    """Positions of the notes and warnings: by the level in the line, or by that of the record that it is of."""
    return _noted_records(lines) | {at for at, line in enumerate(lines) if is_note(line) or is_warning(line)}


def last_entry(lines: Sequence[str]) -> list[str]:
    """The last line that is no field of a record, and the fields below it."""
    written = [line for line in lines if line.strip()]
    at = len(written) - 1
    while at > 0 and _FIELD.match(written[at]):
        at -= 1
    return written[max(at, 0) :]


def _noted_records(lines: Sequence[str]) -> frozenset[int]:
    """Positions of the messages and fields of structured records whose level says that they are notes."""
    found: set[int] = set()
    record: list[int] = []
    for at, line in enumerate([*lines, ""]):
        if not _FIELD.match(line):
            found.update(record if any(_NOTED.match(lines[field]) for field in record) else ())
            record = []
        record.append(at)
    return frozenset(found)


def _is_calm(line: str) -> bool:
    return is_note(line) or (is_warning(line) and not warns_of_failure(line))


def _raises(line: str) -> bool:
    return names_exception(line) or _CALL.search(line) is not None


def is_mild_of_vllm(line: str) -> bool:
    """Whether vLLM's own logger wrote a note or a warning: of its texts those that tell a failure are known."""
    return _OF_VLLM.match(line) is not None
