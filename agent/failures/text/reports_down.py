"""Who is down, as lines say that no rule knows, and nothing below them says that it is well again."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from agent.failures.text.log_text import words_of
from agent.failures.text.streams import body_of
from agent.failures.text.words import StatusWords

MOST_SAID = 64
"""So many lines that say so are looked at; more of them are a storm of the same."""

_TOKEN = re.compile(r"[\w./:@=-]{2,200}")
_NAMES = re.compile(r"[\d./:@=_-]")
_TIME = re.compile(r"[\dT:.,+Z/-]+")


def reports_down(
    lines: Sequence[str], known: Collection[int], words: StatusWords, *, is_over: Callable[[int], bool]
) -> Iterator[int]:
    """Yield the positions of such lines.

    Args:
        lines: The text.
        known: Positions of lines that a rule knows: what their words mean is said there.
        words: Those of the catalogue.
        is_over: Whether what a line says that names nobody is over, for its server went on or was stopped.
    """
    unknown = [at for at in words.may_be_down(lines) if at not in known][:MOST_SAID]
    for at in unknown:
        line = words_of(body_of(lines[at]))
        place = words.down_at(line)
        if place is None:
            continue
        names = _names(line[:place]) or _names(line[place:])
        if not (any(_is_well(below, names, words) for below in lines[at + 1 :]) if names else is_over(at)):
            yield at


def _names(words: str) -> frozenset[str]:
    """What a line names: an address, a path, a word with a number; no time."""
    found = (token.strip("./:=-") for token in _TOKEN.findall(words))
    named = (token for token in found if _NAMES.search(token))
    return frozenset(name for name in named if not _TIME.fullmatch(name) or name.count(".") == 3)


def _is_well(line: str, names: frozenset[str], words: StatusWords) -> bool:
    """Whether a line says of all the names that they are well."""
    return all(name in line for name in names) and words.well(line)
