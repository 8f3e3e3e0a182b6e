"""A storm in bounded memory: the first, the last and the telling lines are kept, the rest is counted."""

from collections import deque
from collections.abc import Container, Hashable, Sequence

from agent.failures.finding import LineMatch
from agent.failures.match.matcher import Matcher
from agent.failures.signature import Proof, Role
from agent.failures.text.log_text import MAX_LINE_CHARS, failure_candidates

HEAD = 1000  # lines kept from the start: they tell the phase
TAIL = 1000  # lines kept from the end: they tell how it ended
SIGHTS = 3  # first sights of a signature that are kept, and the last one
AROUND = 3  # lines kept on either side of a sight: a traceback stands around its message
BANNERS = 2_000  # lines of banners that are kept, three or four to a start
FRESH = 5_000  # lines after a banner among which the first error of that start is looked for
LOUD = 20  # first lines kept that speak of a failure and that no signature knows
CUT_CHARS = 2_000  # characters kept of the last line of a signature, and of its first ones where room ran out
PART_CHARS = 8_000_000  # characters kept of the head, of the tail, and around sights: ordinary lines need far less
KINDS = 10_000  # signatures by place that are told apart; more are counted together


class LogSample:
    """A log of any length as a bounded one that tells the same.

    Args:
        matcher: The compiled catalogue.
        whole_chars: A log of at most so many characters is kept whole; 0 keeps no log whole that is longer than its
            head and tail.
    """

    def __init__(self, matcher: Matcher, *, whole_chars: int = 0) -> None:
        self._matcher = matcher
        self._whole: list[str] | None = [] if whole_chars else None
        self._whole_chars = whole_chars
        self._kept: dict[int, str] = {}
        self._tail: deque[tuple[int, str]] = deque(maxlen=TAIL)
        self._room = {"head": PART_CHARS, "around": PART_CHARS, "sights": PART_CHARS}
        self._tail_chars = 0
        self._counts: dict[str, int] = {}
        self._last: dict[str, tuple[int, str]] = {}
        self._banners = matcher.proving(Proof.NEW_START)
        self._banner_lines = 0
        self._fresh_until = 0  # the first error before this line is the first of its start
        self._loud = 0
        self._owed = 0  # lines of the next stretch that stand around a sight of this one
        self.total = 0

    def add(self, lines: Sequence[str]) -> None:
        """Take the next lines in; they stand behind all that came before.

        Args:
            lines: Whole lines, untrusted; given in stretches of some thousands for speed. What a line holds beyond
                ``MAX_LINE_CHARS`` is not kept.
        """
        if max(map(len, lines), default=0) > MAX_LINE_CHARS:
            lines = [line[:MAX_LINE_CHARS] for line in lines]
        self._add_whole(lines)
        base = self.total
        self._keep("around", base, lines, range(min(self._owed, len(lines))))
        self._owed = max(0, self._owed - len(lines))
        known = dict(self._matcher.scan(lines))
        last: dict[str, int] = {}
        for index, match in known.items():
            name = match.signature
            count = self._counts[name] = self._counts.get(name, 0) + 1
            if count <= SIGHTS:
                self._keep_around(base, index, lines)
            else:
                last[name] = index
            if base + index < self._fresh_until or name in self._banners:
                self._keep_start(base, index, lines, match)
        self._last.update((name, (base + index, lines[index][:CUT_CHARS])) for name, index in last.items())
        self._keep_loud(base, lines, known)
        if base < HEAD:
            self._keep("head", base, lines, range(min(HEAD - base, len(lines))))
        self._extend_tail(base, lines)
        self.total += len(lines)

    def _add_whole(self, lines: Sequence[str]) -> None:
        if self._whole is None:
            return
        self._whole_chars -= sum(map(len, lines)) + len(lines)
        if self._whole_chars < 0:
            self._whole = None
        else:
            self._whole.extend(lines)

    def _keep(self, part: str, base: int, lines: Sequence[str], indexes: range) -> None:
        for index in indexes:
            if self._room[part] < len(lines[index]):
                return
            if base + index not in self._kept:
                self._room[part] -= len(lines[index])
                self._kept[base + index] = lines[index]

    def _keep_around(self, base: int, index: int, lines: Sequence[str]) -> None:
        cut = lines[index] if self._room["sights"] > 0 else lines[index][:CUT_CHARS]
        self._room["sights"] -= len(cut)
        self._kept[base + index] = cut
        last = min(len(lines), index + AROUND + 1)
        self._keep("around", base, lines, range(max(0, index - AROUND), last))
        self._owed = max(self._owed, index + AROUND + 1 - len(lines))
        if index < AROUND:
            self._kept.update((n, line) for n, line in self._tail if n >= base + index - AROUND)

    def _keep_start(self, base: int, index: int, lines: Sequence[str], match: LineMatch) -> None:
        """Keep the banner of each start, and the first known error below it, however often they were seen before."""
        if match.signature in self._banners and self._banner_lines < BANNERS:
            self._banner_lines += 1
            self._fresh_until = base + index + FRESH
            self._kept[base + index] = lines[index][:CUT_CHARS]
        elif match.role in {Role.CAUSE, Role.CONSEQUENCE}:
            self._fresh_until = 0
            self._keep_around(base, index, lines)

    def _keep_loud(self, base: int, lines: Sequence[str], known: Container[int]) -> None:
        if self._loud >= LOUD:
            return
        unknown = [index for index in range(len(lines)) if index not in known]
        for place in failure_candidates([lines[index] for index in unknown]):
            self._keep_around(base, unknown[place], lines)
            self._loud += 1
            if self._loud >= LOUD:
                return

    def _extend_tail(self, base: int, lines: Sequence[str]) -> None:
        first = max(0, len(lines) - TAIL)
        for index in range(first, len(lines)):
            if len(self._tail) == TAIL:
                self._tail_chars -= len(self._tail[0][1])
            self._tail.append((base + index, lines[index]))
            self._tail_chars += len(lines[index])
        while self._tail_chars > PART_CHARS:
            self._tail_chars -= len(self._tail.popleft()[1])

    def lines(self) -> tuple[str, ...]:
        """Return the kept lines in their order."""
        return tuple(line for _, line in self.numbered())

    def numbered(self) -> tuple[tuple[int, str], ...]:
        """Return the kept lines in their order, each with its place among all that were added, from 1."""
        if self._whole is not None:
            return tuple(enumerate(self._whole, start=1))
        kept = self._kept | dict(self._last.values()) | dict(self._tail)
        return tuple((n + 1, kept[n]) for n in sorted(kept))

    def counts(self) -> dict[str, int]:
        """Return how often each signature was seen."""
        return dict(self._counts)


class PowerOfTwoCounter:
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
