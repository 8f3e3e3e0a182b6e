"""How far a server had come when a line was written, from phase markers and from traceback frames."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agent.failures.signature import Phase

LOOK_BACK_LINES = 200
LOOK_AHEAD_LINES = 120
"""A traceback of one worker, interleaved with those of its neighbours, spans no more than this."""

BELOW_LINES = 4
"""A line of another process may be written a moment after the error that it belongs to."""

_DEEPEST_FIRST = (Phase.GRAPH_CAPTURE, Phase.PROFILING, Phase.LOADING, Phase.SERVING)
STARTING = frozenset({Phase.CONFIG, Phase.LOADING, Phase.PROFILING, Phase.GRAPH_CAPTURE})
_UP = frozenset({Phase.READY, Phase.SERVING})


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A line that proves a phase; ``near`` for a traceback frame."""

    index: int
    phase: Phase
    near: bool


class Timeline:
    """The marks of one text; every question is answered in logarithmic time.

    Args:
        marks: In the order of lines.
    """

    def __init__(self, marks: Sequence[Mark]) -> None:
        markers = [mark for mark in marks if not mark.near]
        frames = [mark for mark in marks if mark.near]
        self._at = [mark.index for mark in markers]
        self._phases = [mark.phase for mark in markers]
        self._frame_at = [mark.index for mark in frames]
        self._frame_phases = [mark.phase for mark in frames]
        self._ahead = _what_follows(self._phases)

    def phase_at(self, index: int) -> Phase:
        """The phase of the line at ``index``: its traceback's frames decide before the marker above it."""
        for first, last in ((index - LOOK_BACK_LINES, index), (index + 1, index + LOOK_AHEAD_LINES)):
            window = self._frame_phases[bisect_left(self._frame_at, first) : bisect_right(self._frame_at, last)]
            found = next((phase for phase in _DEEPEST_FIRST if phase in window), None)
            if found is not None:
                return found
        above = self.marker_at(index)
        return above if above is not Phase.UNKNOWN else self._just_below(index)

    def marker_at(self, index: int) -> Phase:
        """The phase of the last marker at or above ``index``; READY counts as SERVING."""
        at = bisect_right(self._at, index)
        if not at:
            return Phase.UNKNOWN
        phase = self._phases[at - 1]
        return Phase.SERVING if phase is Phase.READY else phase

    def came_up_after(self, index: int) -> bool:
        """Whether the run that wrote ``index`` while it started became ready afterwards.

        With no marker above the line only "ready" proves it: tokens may be those of a server that runs on.
        """
        before = self.marker_at(index)
        if before in {Phase.SERVING, Phase.STOPPING}:
            return False
        ready, serving = self._ahead[bisect_right(self._at, index)]
        return ready or (serving and before in STARTING)

    def progress_after(self, index: int) -> bool:
        """Whether any marker stands below the line."""
        return bool(self._at) and self._at[-1] > index

    @property
    def ended_up(self) -> bool:
        """Whether the last marker says ready or serving, or an ordered stop after either."""
        if not self._phases:
            return False
        last = self._phases[-1]
        return last in _UP or (last is Phase.STOPPING and not _UP.isdisjoint(self._phases))

    @property
    def is_progress(self) -> bool:
        """Whether any marker shows a start-up or serving at all."""
        return any(phase in STARTING or phase in _UP for phase in self._phases)

    def _just_below(self, index: int) -> Phase:
        first = bisect_right(self._at, index)
        below = self._phases[first : bisect_right(self._at, index + BELOW_LINES)]
        found = next((phase for phase in below if phase in STARTING or phase in _UP), Phase.UNKNOWN)
        return Phase.SERVING if found in _UP else found


def _what_follows(phases: Sequence[Phase]) -> list[tuple[bool, bool]]:
    """For each position, and the end: does "ready", do tokens follow before the next start."""
    ready = serving = False
    following = [(False, False)]
    for phase in reversed(phases):
        if phase is Phase.CONFIG:
            ready = serving = False
        ready = ready or phase is Phase.READY
        serving = serving or phase is Phase.SERVING
        following.append((ready, serving))
    following.reverse()
    return following
