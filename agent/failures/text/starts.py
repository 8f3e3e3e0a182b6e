"""One start of one server: what its marks say, and which process belongs to it."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.failures.signature import Phase, Proof

BELOW_LINES = 4
"""A line of another process may be written a moment after the error that it belongs to."""

STARTING = frozenset({Phase.CONFIG, Phase.LOADING, Phase.PROFILING, Phase.GRAPH_CAPTURE})
UP = frozenset({Phase.READY, Phase.SERVING})
FIRST = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseMark:
    """A line that proves a phase; ``near`` for a traceback frame."""

    index: int
    phase: Phase
    near: bool
    proof: Proof = Proof.NONE


@dataclass(kw_only=True, slots=True)
class Start:
    """One start of one server: positions in the order of lines."""

    server: str
    begins: int
    banner_at: int
    under_way: bool = False
    pids: dict[str, str] = field(default_factory=dict)
    workers: dict[str, str] = field(default_factory=dict)
    at: list[int] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    stops_at: list[int] = field(default_factory=list)
    works_at: list[int] = field(default_factory=list)
    works: list[Phase] = field(default_factory=list)
    frame_at: list[int] = field(default_factory=list)
    frames: list[Phase] = field(default_factory=list)
    complete_at: list[int] = field(default_factory=list)
    works_by: dict[int | None, int] = field(default_factory=dict)
    tokens_by: dict[int | None, int] = field(default_factory=dict)
    highest_rank: int = 0
    banners: dict[str, int] = field(default_factory=dict)
    engines: int = 0

    def add(self, mark: PhaseMark, rank: int | None) -> None:
        """Take in a mark of this start; ``rank`` is the number of the engine that wrote it."""
        self.highest_rank = max(self.highest_rank, rank or 0)
        if mark.proof is Proof.NEW_START:
            self.banner_at = mark.index
        else:
            self.under_way = True
        if mark.near:
            self.frame_at.append(mark.index)
            self.frames.append(mark.phase)
            return
        self.at.append(mark.index)
        self.phases.append(mark.phase)
        if mark.phase is Phase.STOPPING:
            self.stops_at.append(mark.index)
        if mark.proof is not Proof.ANSWERS and mark.phase is not Phase.STOPPING:
            self.works_at.append(mark.index)
            self.works.append(mark.phase)
            self.works_by[rank] = mark.index
        if mark.proof is Proof.STARTUP_COMPLETE:
            self.complete_at.append(mark.index)
        if mark.proof is Proof.TOKENS:
            self.tokens_by[rank] = mark.index

    def announce(self, mark: PhaseMark, words: str) -> None:
        """Take in what a server, or its engine, says once when it begins, without its time."""
        if mark.proof is Proof.NEW_START:
            self.banners[words] = self.banners.get(words, 0) + 1
        else:
            self.engines += 1

    @property
    def servers(self) -> int:
        """How many servers began here at once, as far as their engines say: of one the banner may stand twice."""
        return min(self.most_servers, self.engines or self.most_servers)

    @property
    def most_servers(self) -> int:
        """How many servers may have begun here at once: so many times the same words of a beginning stand."""
        return max(self.banners.values(), default=1)

    @property
    def last_mark(self) -> int:
        """Where its last mark stands; ``FIRST`` where it has none."""
        return self.at[-1] if self.at else FIRST


def is_another(start: Start, process: tuple[str, str] | None) -> bool:
    """Whether the process belongs to another start, for this one has another of that name."""
    return process is not None and start.pids.get(process[0], process[1]) != process[1]


def start_of_worker(worker: tuple[str, str], starts: Sequence[Start]) -> Start | None:
    """The start that a worker belongs to: its own, or the last, or an earlier one where the last has another.

    Containers have the same pids after each start: there the last is meant. None where it may be of another as well.
    """
    name, pid = worker
    last = starts[-1]
    if name not in last.workers and without_worker(name, starts):
        return None
    others = _with_other_pids(starts)
    known = next((one for one in reversed(others) if one.workers.get(name) == pid), None)
    if known is not None or last.workers.get(name, pid) == pid or not UP.isdisjoint(last.works):
        return known or last
    return next((one for one in reversed(others) if name not in one.workers), last)


def without_worker(name: str, starts: Sequence[Start]) -> list[Start]:
    """The starts beside the last that nobody stopped and that may have a worker of a name, which has not been seen."""
    return [one for one in _with_other_pids(starts) if name not in one.workers and not one.stops_at]


def _with_other_pids(starts: Sequence[Start]) -> list[Start]:
    last = starts[-1]
    return [one for one in starts[-3:-1] if one.pids and last.pids and one.pids.items().isdisjoint(last.pids.items())]


def got_far(start: Start, index: int) -> bool:
    """Whether the last marker at or above the line is more than a line of the banner."""
    at = bisect_right(start.at, index)
    return bool(at) and start.at[at - 1] != start.banner_at


def marker(start: Start, index: int) -> Phase:
    """The phase of the last mark at or above a line; READY counts as SERVING."""
    at = bisect_right(start.at, index)
    if not at:
        return Phase.UNKNOWN
    phase = start.phases[at - 1]
    return Phase.SERVING if phase is Phase.READY else phase


def just_below(start: Start, index: int) -> Phase | None:
    """The first phase of the work that is written right below a line."""
    first = bisect_right(start.works_at, index)
    below = start.works[first : bisect_right(start.works_at, index + BELOW_LINES)]
    found = next((phase for phase in below if phase in STARTING or phase in UP), None)
    return Phase.SERVING if found in UP else found


def any_after(positions: Sequence[int], index: int) -> bool:
    """Whether any of the positions, which are in order, stands below a line."""
    return bool(positions) and positions[-1] > index


def any_between(positions: Sequence[int], first: int, last: int) -> bool:
    """Whether any of the positions, which are in order, stands from the first line on and above the last."""
    return bisect_left(positions, first) < bisect_left(positions, last)
