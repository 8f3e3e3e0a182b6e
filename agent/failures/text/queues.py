"""Whether a queue has drained: how many requests waited in each engine, from the statistics in order."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from agent.failures.signature import Phase
from agent.failures.text.phases import Timeline
from agent.failures.text.starts import PhaseMark
from agent.failures.text.streams import api_server_of, rank_of

SETTLED = 3
"""So many statistics in a row that count nobody, at the end of a stream of one server: no queue stands."""

INTERVAL_S = 10
"""vLLM counts every ten seconds, unless it is told otherwise."""

STATS_SECONDS = 9
"""Of statistics that stand closer, several servers may have written each a part: their queues stay in doubt."""

OLD_STATS_SECONDS = 4
"""Before engines had numbers, vLLM counted every five seconds (metrics.py)."""

SEVERAL = 3
"""So many gaps in a row that repeat those before are no chance: several servers take turns in the stream."""

MOST_WRITERS = 4
"""More servers than this in one stream without names are not told from one that counts often."""

DAY_SECONDS = 86_400

_COUNT = re.compile(r"(?:\bWaiting|\bPending|#queue-req): \d")
_THROUGHPUT = "Avg prompt throughput"
_CLOCK = re.compile(r"\b([012]\d):([0-5]\d):([0-5]\d)\b")

_Start = tuple[str, int | tuple[str, str] | None]
_Writer = tuple[_Start, int | None]
"""A start of a server, and the number of its engine; None where the line names none."""


class Queues:
    """The queues of one text, engine by engine.

    Args:
        waiting: Positions of the lines that say that requests wait, in order.
        empty: In the order of lines, those that say that none waits; one of phase STOPPING, an engine that ended
            without a request in it, says so only where it had been told to stop.
        lines: The text; they say which engine a line is of.
        timeline: Which start of which server wrote a line.
    """

    def __init__(
        self, waiting: Iterable[int], empty: Iterable[PhaseMark], lines: Sequence[str], timeline: Timeline
    ) -> None:
        self._lines, self._timeline = lines, timeline
        self._waiting: dict[_Writer, int] = {}
        self._empty: dict[_Writer, list[int]] = defaultdict(list)
        self._highest: dict[_Start, int] = {}
        for index in waiting:
            self._waiting[self._writer(index)] = index
        for mark in empty:
            if mark.phase is not Phase.STOPPING or timeline.told_to_stop(mark.index):
                self._empty[self._writer(mark.index)].append(mark.index)

    def drained_after(self, index: int) -> bool:
        """Whether the engine that wrote the line counted nobody waiting afterwards, and nobody waited since.

        A line without engine and count, a preemption, is of every engine of its start up to the highest number. Where
        no collector names the server, a queue that fills again may be another replica's in the same stream: the doubt
        keeps it, until the statistics have counted nobody for long, at times that one server alone keeps.
        """
        start, engine = self._writer(index)
        counts = engine is not None or _COUNT.search(self._lines[index])
        highest = None if counts else self._highest.get(start)
        engines = [engine] if highest is None else range(highest + 1)
        return all(self._has_drained((start, one), index) for one in engines)

    def written_by_several(self, index: int) -> bool:
        """Whether nobody names the server of a line, and several took turns where it stands.

        Each engine of one server has a number of its own, and keeps one interval, which is a setting. Servers that
        keep the same interval take turns: the gaps between their statistics differ, and repeat.
        """
        start, _ = self._named(index)
        return any(turns and start == writer[0] for writer, turns in self._close.items())

    @property
    def holds_turns(self) -> bool:
        """Whether several servers took turns anywhere: see :meth:`written_by_several`."""
        return any(self._close.values())

    @property
    def doubts_one_server(self) -> bool:
        """Whether any two statistics, whose server nobody names, stand closer than those of one engine usually do."""
        return bool(self._close)

    def _has_drained(self, writer: _Writer, index: int) -> bool:
        """Whether a line below counts nobody, and none of the same engine below that one counts somebody."""
        start, _ = writer
        empty = self._empty[writer]
        last = max(self._waiting.get(writer, index), self._waiting.get((start, None), index), index)
        since = len(empty) - bisect_right(empty, last)
        if start[0] or (since >= SETTLED and writer not in self._crowded):
            return since > 0
        which = bisect_right(empty, index)
        return which < len(empty) and empty[which] > last

    @cached_property
    def _crowded(self) -> frozenset[_Writer]:
        """Writers whose statistics follow each other faster than those of one engine do, or name no time."""
        last: dict[_Writer, int] = {}
        crowded: set[_Writer] = set()
        for index, line in enumerate(self._lines):
            if not _COUNT.search(line):
                continue
            writer, now = self._named(index), _seconds_of(line)
            gap = abs((now or 0) - last.get(writer, -DAY_SECONDS * 9))
            if now is None or min(gap, abs(DAY_SECONDS - gap)) < STATS_SECONDS:
                crowded.add(writer)
            last[writer] = now or 0
        return frozenset(crowded)

    @cached_property
    def _close(self) -> Mapping[_Writer, bool]:
        """Engines, whose server nobody names, whose statistics stand close, and whether several servers took turns.

        Each API server of one start counts by itself; those of two containers may have one pid. A line that a second
        handler writes again counts once.
        """
        last: dict[tuple[_Writer, tuple[str, str] | None], int] = {}
        gaps: dict[tuple[_Writer, tuple[str, str] | None], list[int]] = defaultdict(list)
        turns: dict[tuple[_Writer, tuple[str, str] | None], int] = defaultdict(int)
        close: dict[_Writer, bool] = {}
        before = ""
        for index, line in enumerate(self._lines):
            if _THROUGHPUT not in line or line == before:
                continue
            writer, now, before = self._named(index), _seconds_of(line), line
            if writer[0][0] or now is None:
                continue
            key = writer, api_server_of(line)
            gap = abs(now - last.get(key, -DAY_SECONDS * 9))
            gap = min(gap, abs(DAY_SECONDS - gap))
            gaps[key] = [*gaps[key][-2 * MOST_WRITERS + 1 :], gap]
            turns[key] = turns[key] + 1 if _repeat(gaps[key]) else 0
            if gap < (OLD_STATS_SECONDS if "metrics.py:" in line else STATS_SECONDS):
                close[writer] = close.get(writer, False) or turns[key] >= SEVERAL
            last[key] = now
        return close

    def _writer(self, index: int) -> _Writer:
        start, engine = self._named(index)
        if engine is not None:
            self._highest[start] = max(engine, self._highest.get(start, 0))
        return start, engine

    def _named(self, index: int) -> _Writer:
        line = self._lines[index]
        return self._timeline.start(index) or (self._timeline.server(index), api_server_of(line)), rank_of(line)


def _repeat(gaps: Sequence[int]) -> bool:
    """Whether the last gaps, of one interval of the statistics at most, differ and are those of the interval before."""
    for writers in range(2, MOST_WRITERS + 1):
        now, before = gaps[-writers:], gaps[-2 * writers : -writers]
        takes_turns = len(before) == writers and sum(now) <= INTERVAL_S + 1 and max(now) - min(now) > 1
        if takes_turns and all(abs(one - other) <= 1 for one, other in zip(now, before, strict=True)):
            return True
    return False


def _seconds_of(line: str) -> int | None:
    """The time of day that the line names first, in seconds."""
    found = _CLOCK.search(line, 0, 200)
    return None if found is None else int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
