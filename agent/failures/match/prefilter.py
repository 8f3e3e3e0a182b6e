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
        rewrite: Applied to such lines, once; those of a chunk that it changes are searched again in one pass.
    """

    def __init__(self, literals: Sequence[bytes], *, marks: Sequence[bytes] = (), rewrite: Rewrite = str) -> None:
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

    def _hits(self, chunk: list[str], first: int) -> list[Hit]:
        hits, marked = self._search_lines(chunk, range(first, first + len(chunk)))
        lines = {number: chunk[number - first] for number in marked}
        changed = {number: new for number, line in lines.items() if (new := self._rewrite(line)) != line}
        if not changed:
            return hits
        again, _ = self._search_lines(list(changed.values()), list(changed))
        return sorted([hit for hit in hits if hit[0] not in changed] + again)

    def _search_lines(self, lines: list[str], numbers: Sequence[int]) -> tuple[list[Hit], list[int]]:
        """The hits in lines of these numbers, and the numbers of those with a hit that hold a mark."""
        raw, starts = joined(lines)
        data = raw.lower()
        hits: list[Hit] = []
        marked: list[int] = []
        literals: list[int] = []
        is_marked = False
        at = -1
        start = end = 0
        for literal, found, _ in self._search.find_matches_as_indexes(data, overlapping=True):
            if found >= end:
                if literals:
                    hits.append((numbers[at], tuple(literals), data[start : end - 1], raw[start : end - 1]))
                    if is_marked:
                        marked.append(numbers[at])
                at = bisect_right(starts, found, at + 1) - 1
                start, end = starts[at], starts[at + 1]
                literals = []
                is_marked = False
            if literal < self._first_mark:
                literals.append(literal)
            else:
                is_marked = True
        if literals:
            hits.append((numbers[at], tuple(literals), data[start : end - 1], raw[start : end - 1]))
            if is_marked:
                marked.append(numbers[at])
        return hits, marked


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    source = iter(lines)
    while chunk := list(islice(source, CHUNK_LINES)):
        while sum(map(len, chunk)) > CHUNK_CHARS and len(chunk) > 1:
            half = len(chunk) // 2
            yield from _chunks(chunk[:half])
            chunk = chunk[half:]
        yield chunk
