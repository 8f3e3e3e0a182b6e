"""All phrases of the catalogue are searched at once, many lines in one pass."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

from ahocorasick_rs import BytesAhoCorasick, Implementation

from agent.failures.phrase import Phrase

CHUNK_LINES = 4096
"""Lines searched in one pass: long enough to spread the cost of a call, short enough to bound memory."""

MEMO_ENTRIES = 4096
"""Distinct combinations of literals remembered; a hostile log can make no more."""


class Prefilter:
    """Finds which phrases stand in which lines.

    Args:
        phrases: In the order of their owners; the position is the phrase's number.
    """

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        anchors: dict[bytes, list[int]] = {}
        for number, phrase in enumerate(phrases):
            anchors.setdefault(phrase.anchor, []).append(number)
        self._phrases = phrases
        self._owners = [tuple(numbers) for numbers in anchors.values()]
        self._search = BytesAhoCorasick(list(anchors), implementation=Implementation.DFA)
        self._plain = {
            literal
            for literal, numbers in enumerate(self._owners)
            if all(len(phrases[number].parts) == 1 for number in numbers)
        }

    def scan(self, lines: Iterable[str]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield (line index, phrase numbers in ascending order) for every line that holds a phrase.

        Memory is bounded by one chunk of lines, whatever the length of the input.
        """
        source = iter(lines)
        first = 0
        memo: dict[tuple[int, ...], tuple[int, ...]] = {}
        while chunk := list(islice(source, CHUNK_LINES)):
            yield from self._scan_chunk(chunk, first, memo)
            first += len(chunk)

    def _scan_chunk(
        self, chunk: list[str], first: int, memo: dict[tuple[int, ...], tuple[int, ...]]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        data, starts = _join(chunk)
        current = -1
        end = 0
        literals: list[int] = []
        for literal, start, _ in self._search.find_matches_as_indexes(data, overlapping=True):
            if start >= end:
                if literals:
                    found = self._confirm(data, starts[current], end, literals, memo)
                    if found:
                        yield first + current, found
                    literals = []
                current = bisect_right(starts, start) - 1
                end = starts[current + 1]
            literals.append(literal)
        if literals:
            found = self._confirm(data, starts[current], end, literals, memo)
            if found:
                yield first + current, found

    def _confirm(
        self, data: bytes, start: int, end: int, literals: list[int], memo: dict[tuple[int, ...], tuple[int, ...]]
    ) -> tuple[int, ...]:
        key = tuple(literals)
        known = memo.get(key)
        if known is not None:
            return known
        wanted = {number for literal in set(literals) for number in self._owners[literal]}
        if self._plain.issuperset(literals):
            if len(memo) >= MEMO_ENTRIES:
                memo.clear()
            memo[key] = found = tuple(sorted(wanted))
            return found
        line = data[start:end]
        return tuple(sorted(number for number in wanted if self._phrases[number].stands_in(line)))


def _join(chunk: list[str]) -> tuple[bytes, list[int]]:
    """One lower-case buffer with a line feed after every line, and where each line starts (one more at the end)."""
    text = "\n".join(chunk)
    if text.isascii():
        data = text.encode().lower()
        lengths: Iterable[int] = map(len, chunk)
    else:
        encoded = [line.encode("utf-8", "surrogatepass") for line in chunk]
        data = b"\n".join(encoded).lower()
        lengths = map(len, encoded)
    return data, list(accumulate((length + 1 for length in lengths), initial=0))
