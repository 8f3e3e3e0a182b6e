"""A phrase is literal text with gaps: found by its longest part, confirmed by the others in order."""

import re
from dataclasses import dataclass
from itertools import pairwise

from agent.failures.signature import WILDCARD


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """Literal parts in order, lower case, UTF-8.

    Attributes:
        parts: At least one part, none empty, no line break inside.
        anchor: The longest part; every occurrence of the phrase contains it.
    """

    parts: tuple[bytes, ...]
    anchor: bytes

    def stands_in(self, line: bytes) -> bool:
        """Whether all parts stand in the lower-case line, in order, without overlap."""
        at = 0
        for part in self.parts:
            at = line.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


def parse_phrase(text: str) -> Phrase:
    """Take a catalogue phrase apart.

    Args:
        text: Literal text, ``<*>`` for gaps; ASCII case does not matter.

    Raises:
        ValueError: The text holds a line break, no literal, or only parts of fewer than 4 bytes.
    """
    if "\n" in text:
        raise ValueError("holds a line break")
    parts = tuple(part.encode().lower() for part in text.split(WILDCARD) if part.strip())
    if not parts or max(map(len, parts)) < 4:
        raise ValueError("has no literal part of 4 bytes or more")
    return Phrase(parts=parts, anchor=max(parts, key=len))


def phrase_pattern(phrase: Phrase) -> str:
    """The same phrase as a regular expression over one lower-case line; a slow second opinion for tests."""
    return ".*?".join(re.escape(part.decode()) for part in phrase.parts)


def gaps_between(phrase: Phrase) -> int:
    """How many gaps the phrase has."""
    return sum(1 for _ in pairwise(phrase.parts))
