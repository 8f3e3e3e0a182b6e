"""Lines that hold the words of a failure and are no evidence of one: settings, quoted source, handled exceptions."""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import TRACEBACK, is_continued, is_error_line, is_note, is_warning
from agent.failures.text.streams import body_of, server_of

MOST_FRAME_LINES = 80
"""A traceback under a warning is read back no further than this."""

_ARGUMENTS = re.compile(
    r"(?:^|[\s:])(?:Namespace\(|non-default args: \{|(?:Async)?EngineArgs\(|engine \(v[^)]{1,60}\) with config: )"
)
_FRAME = re.compile(r'\bFile "[^"]{1,400}", line \d{1,7}, in \S{1,120}\s*$')
_RAISED = re.compile(r"\braise\b")
_WARNED = re.compile(r"\.py:\d{1,7}: \w{0,60}Warning: .{1,400}:\s*$")
_GOES_ON = re.compile(r"\b(?:fall(?:s|ing)? ?back|fallback|ignor(?:ed|ing)|skipp(?:ed|ing))\b", re.IGNORECASE)
_HEAD = re.compile(
    r"(?P<process>(?:\[rank\d{1,4}\]:\s?|\([^()\n]{1,80}=[^()\n]{1,80}\)\s?)*)"
    r"(?:(?P<level>CRITICAL|FATAL|ERROR|WARNING|INFO|DEBUG)[ :]\s{0,4}(?:[\d-]{5,10} [\d:.,]{8,16} )?"
    r"(?:\[?(?P<place>[\w./-]{1,80}:\d{1,6})\])?)?"
)


def is_quoted(lines: Sequence[str], index: int) -> bool:
    """Whether a line holds the words of a failure only because something else is shown in it.

    It lists the arguments of a start; or quotes the source below a traceback's frame; or it is the second line of a
    Python warning.
    """
    line = lines[index]
    if _ARGUMENTS.search(line, 0, 400):
        return not is_error_line(body_of(line))
    if index == 0 or _RAISED.search(line):
        return False
    above = lines[index - 1]
    quoted = _WARNED.search(above) or (_FRAME.search(above) and is_continued(body_of(line)))
    return bool(quoted) and server_of(above) == server_of(line)


def is_handled(lines: Sequence[str], index: int) -> bool:
    """Whether the traceback that the line ends, or stands in, is printed by a warning that says how it goes on.

    The warning stands directly above it and is of the same process. vLLM's logger writes the head of its record before
    every line of it: below such a warning, a traceback without that head is another's. Of other loggers' warnings
    nothing tells a traceback of theirs from one that ended the process: the server must write on below it.
    """
    if _RAISED.search(lines[index]):
        return False
    written_by = _writer(lines[index])
    for at in range(index, max(0, index - MOST_FRAME_LINES), -1):
        if _writer(lines[at]) != written_by:
            return False
        if TRACEBACK in lines[at]:
            said, above = lines[at - 1], _writer(lines[at - 1], record=True)
            own = is_warning(said) and bool(_GOES_ON.search(said)) and above == written_by
            return own and (bool(written_by[-1]) or _goes_on(lines, index))
        if at < index and not is_continued(body_of(lines[at])):
            return False
    return False


def _goes_on(lines: Sequence[str], index: int) -> bool:
    """Whether the server writes a line below a traceback that is neither part of it nor an error."""
    server = server_of(lines[index])
    below = (line for line in lines[index + 1 : index + 1 + MOST_FRAME_LINES] if server_of(line) == server)
    return any(is_note(body) or not (is_continued(body) or is_error_line(body)) for body in map(body_of, below))


def _writer(line: str, *, record: bool = False) -> tuple[str, ...]:
    """Server, process, level and place of a line; ``record`` for a record's first line, which alone may have a level.

    Where no place is named, only the first line of a record has a level.
    """
    head = _HEAD.match(body_of(line))
    said = head.groupdict("") if head else {}
    level = "" if record and not said.get("place") else said.get("level", "")
    return server_of(line), said.get("process", "").strip(), level, said.get("place", "")
