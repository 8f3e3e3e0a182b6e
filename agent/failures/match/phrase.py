"""A phrase is literal text with gaps: found by its longest part, confirmed by the others in order."""

import re
from dataclasses import dataclass
from functools import cache

from agent.failures.signature import WILDCARD

MIN_ANCHOR_BYTES = 4
"""A shorter literal would be found in every other line and cost more than it tells."""

BEFORE_WHOLE_LINE = r"(?:[^\s|]{1,80}\s{0,40}\|\s?)?[\d\s:.,tz+/\[\]-]{0,48}"
"""What may stand before a phrase that is a whole line, lower case: a container as docker compose names it, a time."""

COMMON = frozenset(
    {b"error", b"failed", b"failure", b"invalid", b"timeout", b"timed out", b"not found", b"out of memory", b"cuda"}
    | {b"cuda out of memory", b"no space left", b"no space left on device", b"not supported", b"is not supported"}
    | {
        b"permission denied",
        b"connection refused",
        b"warning",
        b"request",
        b"kv cache",
        b"checkpoint shards",
        b"cannot open shared object file",
        b"divisible",
    }
)
"""Words of ordinary logs: no anchor where a phrase has another part, for each find costs time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Phrase:
    """Literal parts in order, UTF-8.

    Attributes:
        parts: At least one part, none empty, no line break inside.
        anchor: The longest part that is no common word; every occurrence of the phrase contains it.
    """

    parts: tuple[bytes, ...]
    anchor: bytes

    def stands_in(self, text: bytes) -> bool:
        """Whether all parts stand in the text, in order, without overlap; linear in the text."""
        at = 0
        for part in self.parts:
            at = text.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


@cache
def parse_phrase(text: str, *, at_least: int = MIN_ANCHOR_BYTES, fold: bool = True) -> Phrase:
    """Take a catalogue phrase apart.

    Args:
        text: Literal text, ``<*>`` for gaps; ASCII case does not matter.
        at_least: Bytes that the longest literal part must have.
        fold: Put the parts into lower case.

    Raises:
        ValueError: The text holds a line break, or no literal part of ``at_least`` bytes.
    """
    if "\n" in text:
        raise ValueError("holds a line break")
    parts = tuple(part.encode().lower() if fold else part.encode() for part in text.split(WILDCARD) if part.strip())
    if not parts or max(map(len, parts)) < at_least:
        raise ValueError(f"has no literal part of {at_least} bytes or more")
    rare = [part for part in parts if part.strip() not in COMMON and len(part) >= at_least]
    return Phrase(parts=parts, anchor=max(rare or parts, key=len))


def phrase_pattern(phrase: Phrase, *, whole_line: bool = False) -> str:
    """The same phrase as a regular expression over one lower-case line: the slow way, for comparison."""
    pattern = ".*?".join(re.escape(part.decode()) for part in phrase.parts)
    return rf"^\s*{BEFORE_WHOLE_LINE}{pattern}:?\s*$" if whole_line else pattern
