"""A storm in bounded memory: the first, the last and the telling lines are kept, the rest is counted."""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from agent.failures.match import Matcher

HEAD = 1000  # lines kept from the start: they tell the phase
TAIL = 1000  # lines kept from the end: they tell how it ended
SIGHTS = 3  # first sights of a signature that are kept, and the last one
AROUND = 3  # lines kept on either side of a sight: a traceback stands around its message
KINDS = 10_000  # signatures by place that are told apart; more are counted together


@dataclass(slots=True)
class _Sight:
    count: int = 0
    last: tuple[int, str] = (0, "")


class Digest:
    """A log of any length as a bounded one that tells the same.

    Args:
        matcher: The compiled catalogue.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._kept: dict[int, str] = {}
        self._tail: deque[tuple[int, str]] = deque(maxlen=TAIL)
        self._seen: dict[str, _Sight] = {}
        self._owed = 0  # lines of the next stretch that stand around a sight of this one
        self.total = 0

    def add(self, lines: Sequence[str]) -> None:
        """Take the next lines in; they stand behind all that came before.

        Args:
            lines: Whole lines, untrusted; given in stretches of some thousands for speed.
        """
        base = self.total
        self._kept.update((base + n, line) for n, line in enumerate(lines[: self._owed]))
        self._owed = max(0, self._owed - len(lines))
        for index, match in self._matcher.scan(lines):
            sight = self._seen.get(match.signature)
            if sight is None:
                sight = self._seen[match.signature] = _Sight()
            sight.count += 1
            if sight.count <= SIGHTS:
                self._keep_around(base, index, lines)
            else:
                sight.last = (base + index, lines[index])
        if base < HEAD:
            self._kept.update((base + n, line) for n, line in enumerate(lines[: HEAD - base]))
        first = max(0, len(lines) - TAIL)
        self._tail.extend((base + first + n, line) for n, line in enumerate(lines[first:]))
        self.total += len(lines)

    def _keep_around(self, base: int, index: int, lines: Sequence[str]) -> None:
        last = min(len(lines), index + AROUND + 1)
        self._kept.update((base + n, lines[n]) for n in range(max(0, index - AROUND), last))
        self._owed = max(self._owed, index + AROUND + 1 - len(lines))
        if index < AROUND:
            self._kept.update((n, line) for n, line in self._tail if n >= base + index - AROUND)

    def lines(self) -> tuple[str, ...]:
        """Return the kept lines in their order."""
        last = dict(sight.last for sight in self._seen.values() if sight.last[1])
        kept = self._kept | last | dict(self._tail)
        return tuple(kept[n] for n in sorted(kept))

    def counts(self) -> dict[str, int]:
        """Return how often each signature was seen."""
        return {signature: sight.count for signature, sight in self._seen.items()}


class Tally:
    """Tells the first of a kind, and then each power of two, from the rest.

    What is told apart is bounded: behind ``KINDS`` kinds, new ones share one count.
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def tells(self, kind: Hashable) -> bool:
        """Count one of a kind; True for the first and for each power of two."""
        if kind not in self._counts and len(self._counts) >= KINDS:
            kind = None
        count = self._counts.get(kind, 0) + 1
        self._counts[kind] = count
        return count & (count - 1) == 0

    @property
    def total(self) -> int:
        """How many were counted."""
        return sum(self._counts.values())
