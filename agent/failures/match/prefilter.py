"""All literals of the catalogue are searched at once, many lines in one pass."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from ahocorasick_rs import BytesAhoCorasick, Implementation

from agent.failures.text.log_text import joined

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
        marks: As the literals; a hit in a line with one of these counts only if the rewritten line still holds it.
        rewrite: Applied to such lines, once.
    """

    def __init__(
        self, literals: Sequence[bytes], *, marks: Sequence[bytes] = (), rewrite: Rewrite | None = None
    ) -> None:
        self._rewrite = rewrite
        self._first_mark = len(literals)
        # Of the three kinds this one stays in the processor's cache; the larger DFA is slower here.
        self._search = BytesAhoCorasick([*literals, *marks], implementation=Implementation.ContiguousNFA)

    def scan(self, lines: Iterable[str]) -> Iterator[Hit]:
        """Yield a hit for every line that holds a literal; ASCII case does not matter.

        Memory is bounded by one chunk of lines, whatever the length of the input.
        """
        first = 0
        for chunk in _chunks(lines):
            yield from self._hits(chunk, first)
            first += len(chunk)

    def _hits(self, chunk: list[str], first: int, *, rewritten: bool = False) -> list[Hit]:
        raw, starts = joined(chunk)
        data = raw.lower()
        hits: list[Hit] = []
        literals: list[int] = []
        marked = False
        at = -1
        start = end = 0
        for literal, found, _ in self._search.find_matches_as_indexes(data, overlapping=True):
            if found >= end:
                if literals:
                    hit = (first + at, tuple(literals), data[start : end - 1], raw[start : end - 1])
                    hits.extend(self._rewritten(hit) if marked else (hit,))
                at = bisect_right(starts, found, at + 1) - 1
                start, end = starts[at], starts[at + 1]
                literals = []
                marked = False
            if literal < self._first_mark:
                literals.append(literal)
            else:
                marked = not rewritten
        if literals:
            hit = (first + at, tuple(literals), data[start : end - 1], raw[start : end - 1])
            hits.extend(self._rewritten(hit) if marked else (hit,))
        return hits

    def _rewritten(self, hit: Hit) -> list[Hit]:
        """The hits of a marked line once it is rewritten; a line that stays as it is keeps its hit."""
        if self._rewrite is None:
            return [hit]
        line = hit[3].decode("utf-8", "surrogatepass")
        changed = self._rewrite(line)
        if changed == line:
            return [hit]
        return [
            (hit[0], literals, folded, raw) for _, literals, folded, raw in self._hits([changed], 0, rewritten=True)
        ]


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    source = iter(lines)
    while chunk := list(islice(source, CHUNK_LINES)):
        while sum(map(len, chunk)) > CHUNK_CHARS and len(chunk) > 1:
            half = len(chunk) // 2
            yield from _chunks(chunk[:half])
            chunk = chunk[half:]
        yield chunk
