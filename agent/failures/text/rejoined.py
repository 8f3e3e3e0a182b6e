"""Lines that a terminal broke at its width, also within a word, put together again."""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import MAX_LINE_CHARS, TRACEBACK, has_head, is_error_line
from agent.failures.text.streams import body_of, server_of

NARROWEST = 60
"""Characters of the narrowest terminal that breaks a line."""

WIDEST = 320
BROKEN_WORDS = 2
"""Lines as long as the longest that end within a word: so many are no chance."""

_ALIKE = 8
"""Characters with which two lines of a table or of a progress bar begin alike."""

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


def joined_at_width(lines: Sequence[str]) -> list[str]:
    """The lines, where all were broken at one width: each stands whole in its first line, and the others are empty.

    No line is longer than that width then, and some as long as it end within a word. A line that begins as a program or
    a collector begins one, or with two blanks, is no rest; nor is one of a table, or one that calls itself an error.
    """
    width = max(map(len, lines), default=0)
    if not NARROWEST <= width <= WIDEST:
        return list(lines)
    full = {at for at in range(len(lines) - 1) if len(lines[at]) == width and _is_rest(lines[at], lines[at + 1])}
    within = {lines[at] for at in full if lines[at][-1].isalnum() and lines[at + 1][0].isalnum()}
    if len(within) < BROKEN_WORDS:
        return list(lines)
    whole, first = list(lines), 0
    for at in range(1, len(lines)):
        if at - 1 in full and len(whole[first]) < MAX_LINE_CHARS:
            whole[first], whole[at] = (whole[first] + lines[at])[:MAX_LINE_CHARS], ""
        else:
            first = at
    return whole


def _is_rest(above: str, below: str) -> bool:
    if not below or below[:2].isspace() or below[0] in "|+" or above[:_ALIKE] == below[:_ALIKE]:
        return False
    return not (has_head(below) or body_of(below) != below or is_error_line(below) or TRACEBACK in below)
