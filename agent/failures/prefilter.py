"""All literals of the catalogue are searched at once, many lines in one pass."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice

from ahocorasick_rs import BytesAhoCorasick, Implementation

CHUNK_LINES = 4096
"""Lines searched in one pass: long enough to spread the cost of a call, short enough to bound memory."""

CHUNK_CHARS = 4_000_000
"""A chunk ends after this many characters too, so that long lines cannot swell it."""

Hit = tuple[int, tuple[int, ...], bytes, bytes]
"""Line index, literal numbers in the order in which they end, the line in lower case, the line as it is."""

Rewrite = Callable[[str], str]
"""What becomes of a line before it counts."""


class Prefilter:
    """Finds which literals stand in which lines.

    Args:
        literals: Distinct, lower case, UTF-8, no line break inside, at least one.
        marks: A hit in a line with one of these counts only if the rewritten line still holds it.
        rewrite: Applied to such lines; what it returns is rewritten to itself.
    """

    def __init__(
        self, literals: Sequence[bytes], *, marks: Sequence[bytes] = (), rewrite: Rewrite | None = None
    ) -> None:
        self._marks = tuple(marks)
        self._rewrite = rewrite
        # Of the three kinds this one stays in the processor's cache; the larger DFA is slower here.
        self._search = BytesAhoCorasick(literals, implementation=Implementation.ContiguousNFA)

    def scan(self, lines: Iterable[str]) -> Iterator[Hit]:
        """Yield a hit for every line that holds a literal; ASCII case does not matter.

        Memory is bounded by one chunk of lines, whatever the length of the input.
        """
        first = 0
        for chunk in _chunks(lines):
            raw, data, starts = _join(chunk)
            hits = self._hits(raw, data, starts, first)
            # Most chunks hold no mark, and one look at the whole of it tells so.
            if self._rewrite is not None and any(mark in raw for mark in self._marks):
                yield from self._rewritten(hits, self._rewrite)
            else:
                yield from hits
            first += len(chunk)

    def _rewritten(self, hits: Iterable[Hit], rewrite: Rewrite) -> Iterator[Hit]:
        for hit in hits:
            raw = hit[3]
            if any(mark in raw for mark in self._marks):
                line = rewrite(raw.decode("utf-8", "surrogatepass"))
                raw, data, starts = _join([line])
                for _, literals, folded, kept in self._hits(raw, data, starts, 0):
                    yield hit[0], literals, folded, kept
            else:
                yield hit

    def _hits(self, raw: bytes, data: bytes, starts: list[int], first: int) -> list[Hit]:
        hits: list[Hit] = []
        literals: list[int] = []
        at = -1
        start = end = 0
        for literal, found, _ in self._search.find_matches_as_indexes(data, overlapping=True):
            if found >= end:
                if literals:
                    hits.append((first + at, tuple(literals), data[start : end - 1], raw[start : end - 1]))
                at = bisect_right(starts, found, at + 1) - 1
                start, end = starts[at], starts[at + 1]
                literals = [literal]
            else:
                literals.append(literal)
        if literals:
            hits.append((first + at, tuple(literals), data[start : end - 1], raw[start : end - 1]))
        return hits


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    source = iter(lines)
    while chunk := list(islice(source, CHUNK_LINES)):
        while sum(map(len, chunk)) > CHUNK_CHARS and len(chunk) > 1:
            half = len(chunk) // 2
            yield from _chunks(chunk[:half])
            chunk = chunk[half:]
        yield chunk


def _join(chunk: list[str]) -> tuple[bytes, bytes, list[int]]:
    """One buffer of all lines, as it is and in lower case, and where each line starts (one more for the end)."""
    text = "\n".join(chunk)
    if text.isascii():
        raw = text.encode()
        lengths: Iterable[int] = map(len, chunk)
    else:
        encoded = [line.encode("utf-8", "surrogatepass") for line in chunk]
        raw = b"\n".join(encoded)
        lengths = map(len, encoded)
    return raw, raw.lower(), list(accumulate((length + 1 for length in lengths), initial=0))
