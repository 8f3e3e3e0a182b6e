"""Whether a program that no rule knows says that it is up or did what it was asked, and speaks of no trouble."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from agent.failures.text.log_text import is_bare, is_note, is_warning
from agent.failures.text.streams import body_of, server_of
from agent.failures.text.words import StatusWords

_OTHER_SCRIPT = re.compile(r"[^\W\d_A-Za-zµμ]")
_FRAME = re.compile(r"\bframe #\d|\bFile \"[^\"]{1,300}\", line \d|^\s{1,8}at [\w.$]|\.pyx?\", line")
_NOT_READY = re.compile(r"\b0/[1-9]\d{0,3}\s+(?!completed)[a-z]", re.IGNORECASE)
"""A row of a table of pods."""
MOST_STARTS = 3
"""A program that says so often in the same words that it listens is started again and again."""


def reports_up(lines: Sequence[str], words: StatusWords) -> bool:
    """Whether each program says that it is up, or did what it was asked, and nothing below speaks of any trouble.

    Below stand only lines with a level, for of others nobody knows what they mean, and the last one tells of a step of
    its ordinary work; above, of those that speak of
    trouble only notes and warnings, for of them the program says itself that it goes on. A program is what a collector
    names before its lines; none speaks for another.
    """
    written: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line.strip():
            written[server_of(line)].append(body_of(line))
    return bool(written) and all(_goes_on(own, words) for own in written.values())


def is_foreign(line: str) -> bool:
    """Whether a line holds letters that no phrase of the catalogue does: nobody knows what it says."""
    return _OTHER_SCRIPT.search(line) is not None


def _goes_on(lines: Sequence[str], words: StatusWords) -> bool:
    said = [at for at, line in enumerate(lines) if _says_so(line, words)]
    below = lines[said[-1] + 1 :] if said else []
    if not said or any(map(is_bare, below)) or _begins_again(lines, said, words):
        return False
    if below and not words.acts(below[-1]):
        return False
    return not any(
        (_speaks_of_trouble(line, words) or words.up(line))
        and (at > said[-1] or not (is_note(line) or is_warning(line)))
        for at, line in enumerate(lines)
        if at not in said
    )


def _begins_again(lines: Sequence[str], said: Sequence[int], words: StatusWords) -> bool:
    """Whether what stands above the first word that it is up stands below the last one, or it came up ever again."""
    begun = {line for line in lines[: said[0]] if line.strip()}
    ups = Counter(lines[at] for at in said if words.listens(lines[at]))
    return not begun.isdisjoint(lines[said[-1] + 1 :]) or max(ups.values(), default=0) >= MOST_STARTS


def _says_so(line: str, words: StatusWords) -> bool:
    """Whether a line says that its program is up, and speaks of no trouble besides, nor of what it waits for."""
    return words.up(line) and not words.pending(line) and not _speaks_of_trouble(words.without_up(line), words)


def _speaks_of_trouble(line: str, words: StatusWords) -> bool:
    return bool(words.troubled(line) or _NOT_READY.search(line) or _FRAME.search(line) or is_foreign(line))
