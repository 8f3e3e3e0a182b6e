"""How far a server had come when a line was written, from phase markers and from traceback frames."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agent.failures.signature import Phase

LOOK_BACK_LINES = 200
LOOK_AHEAD_LINES = 120
"""A traceback of one worker, interleaved with those of its neighbours, spans no more than this."""

_DEEPEST_FIRST = (Phase.GRAPH_CAPTURE, Phase.PROFILING, Phase.LOADING, Phase.SERVING)
_STARTING = frozenset({Phase.CONFIG, Phase.LOADING, Phase.PROFILING, Phase.GRAPH_CAPTURE})
_UP = frozenset({Phase.READY, Phase.SERVING})


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A line that proves a phase; ``near`` for a traceback frame."""

    index: int
    phase: Phase
    near: bool


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The marks of one text, in order of lines."""

    marks: Sequence[Mark]

    def phase_at(self, index: int) -> Phase:
        """The phase of the line at ``index``: its traceback's frames decide before the marker above it."""
        frames = [mark for mark in self.marks if mark.near]
        for window in (
            [mark.phase for mark in frames if index - LOOK_BACK_LINES <= mark.index <= index],
            [mark.phase for mark in frames if index < mark.index <= index + LOOK_AHEAD_LINES],
        ):
            found = next((phase for phase in _DEEPEST_FIRST if phase in window), None)
            if found is not None:
                return found
        return self.marker_at(index)

    def marker_at(self, index: int) -> Phase:
        """The phase of the last marker at or above ``index``; READY counts as SERVING."""
        markers = [mark for mark in self.marks if not mark.near]
        at = bisect_right([mark.index for mark in markers], index)
        if not at:
            return Phase.UNKNOWN
        phase = markers[at - 1].phase
        return Phase.SERVING if phase is Phase.READY else phase

    def came_up_after(self, index: int) -> bool:
        """Whether the run that wrote ``index`` while it started became ready afterwards.

        With no marker above the line only "ready" proves it: tokens may be those of a server that runs on.
        """
        before = self.marker_at(index)
        if before in {Phase.SERVING, Phase.STOPPING}:
            return False
        for mark in self.marks:
            if mark.index <= index or mark.near:
                continue
            if mark.phase is Phase.CONFIG:
                return False
            if mark.phase is Phase.READY or (mark.phase is Phase.SERVING and before in _STARTING):
                return True
        return False

    def progress_after(self, index: int) -> bool:
        """Whether any marker stands below the line."""
        return any(mark.index > index and not mark.near for mark in self.marks)

    @property
    def ended_up(self) -> bool:
        """Whether the last marker says ready or serving."""
        last = next((mark.phase for mark in reversed(self.marks) if not mark.near), Phase.UNKNOWN)
        return last in _UP or (last is Phase.STOPPING and any(mark.phase in _UP for mark in self.marks))

    @property
    def is_progress(self) -> bool:
        """Whether any marker shows a start-up or serving at all."""
        return any(not mark.near and mark.phase in _STARTING | _UP for mark in self.marks)
