"""A launcher that logs what its server prints, each line as a note of its own: the lines without that head."""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import TRACEBACK, has_head, is_raised

MOST_ASKED = 20
"""So many of the first lines are looked at before the whole text is."""

_TIME = r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?"
_NAME = r"[\w./-]{1,60}"
_HEAD = re.compile(
    rf"(?:{_TIME}(?: - |\s*\|\s*|\s))?(?P<head>{_NAME} - (?:INFO|DEBUG) - |(?:INFO|DEBUG):{_NAME}:"
    rf"|(?:INFO|DEBUG)\s{{0,8}}\|\s{{0,2}}{_NAME}:{_NAME}:\d{{1,6}} - "
    rf"|\[?(?:INFO|DEBUG)\]?\s{{1,4}}(?:{_NAME}: |\[{_NAME}\] ))"
)

_STDERR = re.compile(rf"{_TIME} \| ERROR \| stderr \| ?")
"""FastChat, which logs what is printed on its standard error as an error, whatever it says (fastchat/utils.py)."""

_ENDED_BY = re.compile(r"[\w.-]{1,40}(?: \w{1,20})?: (?:error|fatal): ")
"""How a program of the command line writes why it ended."""


def unrelayed(lines: Sequence[str]) -> Sequence[str]:
    """The lines without the head that one logger wrote before each of them as a note, where another wrote its own.

    What a launcher passes on has a level, a process or a traceback of its own behind that head; without them the
    notes are the program's own, and stay.
    """
    if any(_STDERR.match(line) for line in lines[:MOST_ASKED]):
        return [_STDERR.sub("", line, count=1) for line in lines]
    first = _heads(lines[:MOST_ASKED])
    if first is None or (found := _heads(lines)) is None:
        return lines
    rest = [line[len(head) :] for line, head in zip(lines, found, strict=True)]
    own = (TRACEBACK in said or has_head(said) or is_raised(said) or _ENDED_BY.match(said) for said in rest)
    return rest if any(own) else lines


def _heads(lines: Sequence[str]) -> list[str] | None:
    """What stands before each line; None where a line has no such head, or two have heads of different loggers."""
    heads: list[str] = []
    of: str | None = None
    for line in lines:
        found = _HEAD.match(line) if line.strip() else None
        if line.strip() and (found is None or (of is not None and found["head"] != of)):
            return None
        of = found["head"] if found else of
        heads.append(found[0] if found else "")
    return heads if of is not None else None
