"""Lines that a terminal broke at its width, also within a word, put together again."""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import MAX_LINE_CHARS, is_error_line
from agent.failures.text.streams import body_of, server_of

NARROWEST = 60
"""Characters of the narrowest terminal that breaks a line."""

_COLUMNS = "   "
"""Blanks between the columns of a table, whose rows are no rest of the row above."""

_WITHIN = re.compile(r"[\w,-] ?$")
_REST = re.compile(r" ?(?!(?:raise|return|await|assert|from|import|with) )-?[a-z]{1,20}[ ,.:;'\")/_-]")


def rejoined(lines: Sequence[str]) -> list[str]:
    """The lines, where one that goes on in the next stands whole, and the next is empty.

    Both are of one server, as collectors name it before them. What says of itself that it is an error is no rest.
    """
    whole = list(lines)
    bodies = [body_of(line) for line in lines]
    at = 0
    for index in range(1, len(whole)):
        if _goes_on(bodies[index - 1], bodies[index]) and server_of(lines[index - 1]) == server_of(lines[index]):
            whole[at], whole[index] = (whole[at] + bodies[index])[:MAX_LINE_CHARS], ""
        else:
            at = index
    return whole


def _goes_on(above: str, below: str) -> bool:
    broken = len(above) >= NARROWEST and _WITHIN.search(above) and _REST.match(below)
    return bool(broken) and _COLUMNS not in below.strip() and not is_error_line(below)
