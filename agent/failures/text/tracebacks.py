"""Where the traceback that a line announces or belongs to ends, and whether a text ends within one."""

import re
from collections.abc import Collection, Sequence

from agent.failures.signature import Phase
from agent.failures.text.log_text import TRACEBACK, is_continued, is_error_line, is_note
from agent.failures.text.no_evidence import FRAME, MOST_FRAME_LINES, MOST_TRACEBACK_LINES, goes_on_above
from agent.failures.text.phases import Timeline
from agent.failures.text.streams import body_of, server_of

_AT_EXIT = re.compile(r'/weakref\.py", line \d{1,5}, in _exitfunc\b')
_LAST_FRAME_WITHIN = 4
"""Lines below a frame that may still be its own: the source as it stands there, and what points at a part of it."""


def ends_traceback(lines: Sequence[str], index: int) -> bool:
    """Whether the line is the exception that ends a traceback whose lines stand right above it."""
    body = body_of(lines[index])
    if is_continued(body) or not is_error_line(body):
        return False
    server = server_of(lines[index])
    for at in range(index - 1, max(-1, index - MOST_FRAME_LINES), -1):
        if TRACEBACK in lines[at]:
            return at < index - 1
        if server_of(lines[at]) != server or not goes_on_above(lines[at]):
            return False
    return False


def end_of_traceback(lines: Sequence[str], head: int, timeline: Timeline) -> int | None:
    """The line that ends the traceback at or right below a line, or around it: the first that is no part of it.

    None where a note follows, which is no exception: its log does not hold what was raised.
    """
    server = timeline.server(head)
    first = next((at for at in (head, head + 1) if at < len(lines) and TRACEBACK in lines[at]), len(lines))
    first = head if goes_on_above(lines[head]) else first
    for index in range(first + 1, min(len(lines), head + MOST_TRACEBACK_LINES)):
        if timeline.server(index) == server and not goes_on_above(lines[index]):
            return None if is_note(body_of(lines[index])) else index
    return None


def heads_traceback_of(lines: Sequence[str], index: int, ends: Collection[int], timeline: Timeline) -> bool:
    """Whether a line is the head of a traceback that ends in one of ``ends``, in a start that loads already."""
    begun = TRACEBACK in lines[index] and timeline.marker_at(index) is not Phase.CONFIG
    return begun and end_of_traceback(lines, index, timeline) in ends


def ends_in_traceback(lines: Sequence[str]) -> bool:
    """Whether the last lines are frames of a traceback: what was raised is not in the text.

    What Python calls when a program ends (``weakref._exitfunc``) comes after all that the program did.
    """
    said = [line for line in lines[-2 * _LAST_FRAME_WITHIN :] if line.strip()][-_LAST_FRAME_WITHIN:]
    frames = [at for at, line in enumerate(said) if FRAME.search(line)]
    if not frames or not all(map(goes_on_above, said[frames[-1] :])):
        return False
    last = lines[-MOST_FRAME_LINES:]
    heads = [at for at, line in enumerate(last[:-1]) if TRACEBACK in line]
    return not (heads and _AT_EXIT.search(last[heads[-1] + 1]))
