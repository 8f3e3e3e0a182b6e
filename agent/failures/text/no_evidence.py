"""Lines that hold the words of a failure and are no evidence of one: settings, quoted source, handled exceptions."""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import TRACEBACK, is_continued, is_error_line, is_warning
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


def is_no_evidence(lines: Sequence[str], index: int) -> bool:
    """Whether a line with the words of a failure says nothing of one.

    It lists the arguments of a start; or quotes the source below a traceback's frame; or it is the second line of a
    Python warning; or belongs to a traceback that a warning printed which says that the program goes on without.
    """
    line = lines[index]
    if _ARGUMENTS.search(line, 0, 400):
        return not is_error_line(body_of(line))
    if index == 0 or _RAISED.search(line):
        return False
    above = lines[index - 1]
    quoted = _WARNED.search(above) or (_FRAME.search(above) and is_continued(body_of(line)))
    return (bool(quoted) and server_of(above) == server_of(line)) or _is_handled(lines, index)


def _is_handled(lines: Sequence[str], index: int) -> bool:
    """Whether the traceback that the line ends, or stands in, is printed by a warning that says how it goes on."""
    server = server_of(lines[index])
    for at in range(index, max(0, index - MOST_FRAME_LINES), -1):
        if TRACEBACK in lines[at]:
            above = lines[at - 1]
            return is_warning(above) and bool(_GOES_ON.search(above)) and server_of(above) == server
        if at < index and not is_continued(body_of(lines[at])):
            return False
    return False
