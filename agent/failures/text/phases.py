"""How far each start of each server had come when a line was written, from phase markers and traceback frames."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

from agent.failures.signature import Phase, Proof
from agent.failures.text.starts import (
    FIRST,
    STARTING,
    UP,
    PhaseMark,
    Start,
    any_after,
    any_between,
    got_far,
    is_another,
    just_below,
    marker,
    start_of_worker,
    without_worker,
)
from agent.failures.text.streams import api_server_of, body_of, engine_of, is_of_parallel, rank_of, server_of, worker_of

LOOK_BACK_LINES = 200
LOOK_AHEAD_LINES = 120
"""A traceback of one worker, interleaved with those of its neighbours, spans no more than this."""

BANNER_LINES = 12
"""A start prints its banner, its version and its arguments within so many lines."""

_NUMBERS = re.compile(r"(?<![.\w])\d[\d:.,-]*")
_DEEPEST_FIRST = (Phase.GRAPH_CAPTURE, Phase.PROFILING, Phase.LOADING, Phase.SERVING)
_SAYS_LITTLE = frozenset({Phase.UNKNOWN, Phase.CONFIG})
"""A banner above says that a server began, not how far it came."""


class Timeline:
    """The marks of one text, server by server and start by start; a question costs logarithmic time.

    Args:
        marks: In the order of lines.
        lines: The text; they say which server and which process wrote a mark.
        troubled: Positions of lines that speak of trouble or of a stop, in order: a banner below one is a new start.
        servers: Who wrote each line, where that is known from elsewhere.
        probed: Of ``troubled``, the lines that only say that a probe got no answer yet: above the first banner of all
            they are of the start that it begins.
        ended: Positions, in order, of lines that say that an HTTP server ended.
    """

    def __init__(
        self,
        marks: Sequence[PhaseMark],
        lines: Sequence[str],
        troubled: Sequence[int] = (),
        servers: Sequence[str] = (),
        *,
        probed: Collection[int] = (),
        ended: Sequence[int] = (),
    ) -> None:
        self._probed = probed
        self._ended = ended
        self._lines = lines
        self._given = servers
        self._troubled = troubled
        self._servers: dict[int, str] = {}
        self._starts: dict[str, list[Start]] = {}
        self._of_process: dict[tuple[str, tuple[str, str]], list[Start]] = defaultdict(list)
        for mark in marks:
            start = self._start_for(mark)
            if mark.phase is Phase.CONFIG and not mark.near and not self._is_doubled(mark.index):
                start.announce(mark, _words(lines[mark.index]))
            if not self._may_be_of_another(start, mark):
                start.add(mark, rank_of(self._lines[mark.index]))
        self._last_marks = {
            server: list(accumulate((start.last_mark for start in starts), max))
            for server, starts in self._starts.items()
        }
        self._marked = [server for server, starts in self._starts.items() if any(start.at for start in starts)]
        self._only = self._marked[0] if len(self._marked) == 1 else None
        self.is_progress = any(
            not {*STARTING, *UP}.isdisjoint(start.phases) for starts in self._starts.values() for start in starts
        )

    def server(self, index: int) -> str:
        """The server that wrote the line; see :func:`agent.failures.text.streams.server_of`."""
        if index not in self._servers:
            named = server_of(self._lines[index]) if 0 <= index < len(self._lines) else ""
            given = self._given[index] if 0 <= index < len(self._given) else ""
            self._servers[index] = "/".join(filter(None, (given, named)))
        return self._servers[index]

    def own_lines(self, index: int) -> Sequence[str]:
        """The text with the lines of other servers, and of other starts of this one, made empty."""
        start = self._start_at(index)
        if start is None and not self.server(index):
            return self._lines
        first, last = (0, len(self._lines)) if start is None else self._reach(start)
        own = self.server(index)
        return [line if first <= at < last and self.server(at) == own else "" for at, line in enumerate(self._lines)]

    def phase_at(self, index: int) -> Phase:
        """The phase of the line at ``index``: its traceback's frames decide before the marker above it."""
        start = self._start_at(index)
        if start is None:
            return self.marker_at(index)
        for first, last in ((index - LOOK_BACK_LINES, index), (index + 1, index + LOOK_AHEAD_LINES)):
            window = start.frames[bisect_left(start.frame_at, first) : bisect_right(start.frame_at, last)]
            found = next((phase for phase in _DEEPEST_FIRST if phase in window), None)
            if found is not None:
                return found
        above = marker(start, index)
        return above if above not in _SAYS_LITTLE else just_below(start, index) or above

    def marker_at(self, index: int) -> Phase:
        """The phase of the last marker of the same start at or above ``index``; READY counts as SERVING.

        A line of nobody, such as an event of the platform, takes the phase of the one server that has any.
        """
        start = self._start_at(index) or self._only_start_at(index)
        return Phase.UNKNOWN if start is None else marker(start, index)

    def stopped(self, index: int) -> bool:
        """Whether somebody had stopped the process that wrote the line.

        What only another engine says of itself is no order to this one: a launcher ends all engines when one fails.
        """
        if self.marker_at(index) is not Phase.STOPPING:
            return False
        own = engine_of(self._lines[index]) if 0 <= index < len(self._lines) else None
        return own is None or self._start_at(index) is None or self.told_to_stop(index)

    def told_to_stop(self, index: int) -> bool:
        """Whether the start that wrote the line was told to stop at or above it, whatever it wrote since."""
        own = engine_of(self._lines[index]) if 0 <= index < len(self._lines) else None
        start = self._start_at(index)
        if start is None:
            return False
        above = start.stops_at[: bisect_right(start.stops_at, index)]
        return any(own is None or engine_of(self._lines[at]) in {None, own} for at in above)

    def only_begun(self, index: int) -> bool:
        """Whether nothing but a banner stands above the line in its start: it began, and how far it came is open."""
        start = self._start_at(index)
        return start is not None and not got_far(start, index)

    def started_after(self, index: int) -> bool:
        """Whether the very start that wrote ``index`` completed afterwards.

        Another start of the server does not count: the one that failed has ended. Where several starts write into
        one stream and the line does not say whose it is, all of them must complete.
        """
        start = self._start_at(index)
        if start is None or not any_after(start.complete_at, index) or start.complete_at[0] < index:
            return False
        if self._names_its_start(start, index):
            return True
        if self._may_be_of_one_that_fell(start, index):
            return False
        others = (other for other in self._around(start.server, index) if other is not start)
        return all(any_after(other.complete_at, index) for other in others)

    def came_up(self, pods: Collection[str], index: int) -> bool:
        """Whether one of the pods, whose logs collectors name, was starting at the line and came up below.

        Where nobody names the one server of the text it may be theirs.
        """
        servers = [server for server in self._marked if pods and server.replace(" ", "/").partition("/")[0] in pods]
        servers += [self._only] if pods and self._only == "" else []
        return any(any_after(self._last_begun(server, index).complete_at, index) for server in servers)

    def completes_below(self, index: int) -> bool:
        """Whether a server came up below the line on the host that the line names, or one whose host nobody names."""
        host = self.server(index).partition("/")[0]
        here = (starts for server, starts in self._starts.items() if server.partition("/")[0] in {"", host})
        return any(any_after(start.complete_at, index) for starts in here for start in starts)

    def _may_be_of_one_that_fell(self, start: Start, index: int) -> bool:
        """Whether a line of an engine whose start nobody names may be of one that never came up."""
        worker = worker_of(self._lines[index])
        if worker is None or self._last_of(start.server, worker, index) is not None:
            return False
        return any(UP.isdisjoint(one.works) for one in without_worker(worker[0], self._starts[start.server]))

    def _names_its_start(self, start: Start, index: int) -> bool:
        line = self._lines[index]
        return api_server_of(line) is not None or self._last_of(start.server, worker_of(line), index) is start

    def served_after(self, index: int) -> bool:
        """Whether the start that wrote ``index`` completed a request, or counted a new token, afterwards.

        Of several data-parallel engines the one that wrote the line must count it, and all where the line names none:
        a completed request does not say which engine answered.
        """
        start = self._start_at(index)
        if start is None or not self._any_of_own(start, start.tokens_by, index):
            return False
        return not self._may_be_of_one_that_fell(start, index)

    def may_be_of_two(self, index: int, *, perhaps: bool = False) -> bool:
        """Whether the line names no process, and two servers or more are up where it stands, as far as anybody says.

        An earlier start counts that came up and that nobody stopped; one in a container that began again has the same
        pids as the last. Where processes are named it must have written on below the later one, but for ``perhaps``,
        which also takes a banner that stands twice for two servers.
        """
        start = self._start_at(index)
        if start is None or self._names_its_start(start, index):
            return False
        starts = self._starts[start.server]
        at = bisect_left(starts, start.begins, key=lambda one: one.begins)
        before = [one for one in starts[max(0, at - 2) : at] if one.complete_at and not one.stops_at]
        others = (one for one in before if one.pids.items().isdisjoint(start.pids.items()))
        up = (one for one in others if not any_between(self._ended, one.begins, start.begins))
        servers = start.most_servers if perhaps else start.servers
        named = bool(start.pids) and not perhaps
        return servers > 1 or any(not (named and one.pids) or one.last_mark > start.begins for one in up)

    def loaded_after(self, index: int) -> bool:
        """Whether the start that wrote ``index`` had its weights loaded afterwards, whatever came of it."""
        start = self._start_at(index)
        if start is None:
            return False
        later = start.works[bisect_right(start.works_at, index) :]
        return any(phase is Phase.PROFILING or phase is Phase.GRAPH_CAPTURE or phase in UP for phase in later)

    def up_below(self, index: int) -> int:
        """Where the start that wrote ``index`` first says below it that it is up; the end of the text if nowhere."""
        start = self._start_at(index)
        first = len(self._lines) if start is None else bisect_right(start.works_at, index)
        ups = () if start is None else zip(start.works_at[first:], start.works[first:], strict=True)
        return next((at for at, phase in ups if phase in UP), len(self._lines))

    def start(self, index: int) -> tuple[str, int] | None:
        """Which start wrote the line: its server and where it begins; None where none is known."""
        start = self._start_at(index)
        return None if start is None else (start.server, start.begins)

    def progress_after(self, index: int) -> bool:
        """Whether any marker of the same start stands below the line, and not only those of another engine."""
        start = self._start_at(index)
        if start is None or not any_after(start.works_at, index):
            return False
        return start.works_by.get(None, FIRST) > index or self._any_of_own(start, start.works_by, index)

    def begins_below(self, index: int) -> bool:
        """Whether a server's first banner of all stands below its line: a script before it, which did not stop it."""
        starts = self._starts.get(self.server(index), [])
        above = any(start.at[:1] <= [index] if start.at else FIRST < start.banner_at <= index for start in starts)
        return not above and any(start.banner_at > index for start in starts)

    def others_start(self, index: int) -> bool:
        """Whether the line is of nobody who serves, while one who does had not begun yet, or was still starting."""
        own = self.server(index)
        if not own or own in self._marked:
            return False
        begun = (marker(self._last_begun(server, index), index) for server in self._marked if server)
        return any(phase in {*STARTING, Phase.UNKNOWN} for phase in begun)

    @property
    def last_phase(self) -> Phase:
        """The phase of the last marker of all; READY counts as SERVING."""
        last = max(self._with_marks(), key=lambda start: start.at[-1], default=None)
        return Phase.UNKNOWN if last is None else marker(last, last.at[-1])

    @property
    def ended_after_last_mark(self) -> bool:
        """Whether an HTTP server said that it ended, below the last marker of all."""
        return any_after(self._ended, max((start.at[-1] for start in self._with_marks()), default=FIRST))

    def _with_marks(self) -> Iterator[Start]:
        return (start for starts in self._starts.values() for start in starts if start.at)

    def ends_below(self, index: int) -> bool:
        """Whether the HTTP server of the start that a line is of said below it that it ended, and nothing else."""
        start = self._start_at(index) or self._only_start_at(index)
        below = (at for at in self._ended if start is not None and at > index >= start.last_mark)
        return any((self._start_at(at) or self._only_start_at(at)) is start for at in below)

    def is_last_of(self, name: str, index: int) -> bool:
        """Whether a name is that of a server of the text which nobody had stopped, and says nothing below the line."""
        server = next((server for server in self._marked if name and name in server.split("/")), None)
        if server is None:
            return False
        own = (at for at in self._ended if self.server(at) == server)
        start = self._last_begun(server, index)
        stopped = marker(start, index) is Phase.STOPPING or any(start.begins < at < index for at in own)
        return self._last_marks[server][-1] < index and not stopped

    def leaves_one_silent(self, index: int) -> bool:
        """Whether one of several servers, which all have names, nobody had stopped and says nothing below a line.

        One that had not begun above it counts as little as one that goes on.
        """
        named = [server for server in self._marked if server]
        if len(named) < max(len(self._marked), 2):
            return False
        begun = (self._last_begun(server, index) for server in named if self._last_marks[server][-1] < index)
        ended = {self.server(at) for at in self._ended}
        return any(not start.stops_at and start.server not in ended for start in begun)

    def may_name(self, name: str) -> bool:
        """Whether a name may be that of a server of the text: it is one's, or nobody names any."""
        return not name or any(not server or name in server.split("/") for server in self._marked)

    def _is_doubled(self, index: int) -> bool:
        """Whether a line is the one above it once more: two collectors, or two handlers, wrote both."""
        return index > 0 and body_of(self._lines[index]) == body_of(self._lines[index - 1])

    def _start_for(self, mark: PhaseMark) -> Start:
        server = self.server(mark.index)
        starts = self._starts.setdefault(server, [Start(server=server, begins=FIRST, banner_at=FIRST)])
        process = api_server_of(self._lines[mark.index])
        worker = worker_of(self._lines[mark.index])
        of_worker = start_of_worker(worker, starts) if worker else None
        start = self._last_of(server, process, mark.index) or of_worker or starts[-1]
        if self._begins_anew(mark, start, process):
            start = Start(server=server, begins=mark.index, banner_at=mark.index)
            starts.append(start)
        if worker is not None and of_worker is not None and worker[0] not in start.workers:
            start.workers[worker[0]] = worker[1]
            self._of_process[server, worker].append(start)
        if process is not None and process[0] not in start.pids:
            start.pids[process[0]] = process[1]
            self._of_process[server, process].append(start)
        return start

    def _last_of(self, server: str, process: tuple[str, str] | None, index: int) -> Start | None:
        """The last start above a line that the process is known to belong to."""
        known = self._of_process.get((server, process), ()) if process else ()
        return next((start for start in reversed(known) if start.begins <= index), None)

    def _begins_anew(self, mark: PhaseMark, start: Start, process: tuple[str, str] | None) -> bool:
        if is_another(start, process):
            return True
        if mark.near or mark.phase is not Phase.CONFIG:
            return False
        if mark.proof is not Proof.NEW_START:  # an engine that begins again after it was up, without a banner
            return any(phase in UP for phase in start.works)
        far = start.banner_at != FIRST and mark.index - start.banner_at > BANNER_LINES
        return start.under_way or far or self._trouble_between(start.banner_at, mark.index)

    def _may_be_of_another(self, start: Start, mark: PhaseMark) -> bool:
        """Whether nobody says who serves, the last start is not up, and an earlier one is, which nobody stopped."""
        if start.complete_at or mark.near or mark.phase is not Phase.SERVING or api_server_of(self._lines[mark.index]):
            return False
        before = self._starts[start.server][-3:-1]
        return any(other.complete_at and not other.stops_at for other in before)

    def _around(self, server: str, index: int) -> Iterator[Start]:
        """The starts of a server that had begun before the line and wrote after it."""
        starts, last = self._starts[server], self._last_marks[server]
        at = bisect_left(starts, index, key=lambda start: start.begins) - 1
        while at >= 0 and last[at] > index:
            if starts[at].last_mark > index:
                yield starts[at]
            at -= 1

    def _reach(self, start: Start) -> tuple[int, int]:
        """Where a start begins, and where the next one of its server does."""
        later = [other.begins for other in self._starts[start.server] if other.begins > start.begins]
        return max(0, start.begins), min(later, default=len(self._lines))

    def _trouble_between(self, first: int, last: int) -> bool:
        between = self._troubled[bisect_left(self._troubled, first) : bisect_right(self._troubled, last)]
        return any(first != FIRST or at not in self._probed for at in between)

    def _start_at(self, index: int) -> Start | None:
        starts = self._starts.get(self.server(index))
        if starts is None:
            return None
        process = api_server_of(self._lines[index]) if 0 <= index < len(self._lines) else None
        last = bisect_right(starts, index, key=lambda start: start.begins) - 1
        worker = worker_of(self._lines[index]) if 0 <= index < len(self._lines) and process is None else None
        start = self._last_of(self.server(index), process or worker, index) or starts[last]
        return None if is_another(start, process) else start

    def _any_of_own(self, start: Start, last_by: Mapping[int | None, int], index: int) -> bool:
        """Whether the engine that wrote the line, or every one where it names none, has a mark below it."""
        line = self._lines[index]
        if start.highest_rank == 0 and not is_of_parallel(line):
            return max(last_by.values(), default=FIRST) > index
        own = rank_of(line)
        ranks = range(start.highest_rank + 1) if own is None else [own]
        return all(last_by.get(rank, FIRST) > index for rank in ranks)

    def _only_start_at(self, index: int) -> Start | None:
        return None if self._only is None or self.server(index) else self._last_begun(self._only, index)

    def _last_begun(self, server: str, index: int) -> Start:
        starts = self._starts[server]
        return starts[bisect_right(starts, index, key=lambda start: start.begins) - 1]


def _words(line: str) -> str:
    """What a program wrote, without the numbers of a time and a place before it."""
    return _NUMBERS.sub("", body_of(line)[:200])
