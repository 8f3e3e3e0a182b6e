"""The monitor of a server on this machine: its log, its ends and its checks become signals, each once."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from itertools import accumulate, groupby
from pathlib import Path

from agent.app import App
from agent.app.host_environment import open_follower
from agent.core.incident.phase import Phase
from agent.core.intake.ends import LINE_LIMIT, PlainEnds, end_of
from agent.core.intake.log_sample import PowerOfTwoCounter
from agent.core.intake.signal import LIVE, AlertState, End, Signal, Source, alert_key, log_key
from agent.core.service.request_counts import RequestCounts
from agent.errors import SreError
from agent.ports.host import CheckResult, HostCheck, HostServers, LogFollower, Stage, Start, State
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.stages.signal_to_incident import signal_to_incident
from agent.structured_log import structlog

log = structlog.get_logger(__name__)

STEP_S = 0.25
CHECK_S = 10.0
RECHECK_S = 3.0  # after /health was missed: with two misses a server that is gone is known within 15 s
FOLLOW_S = 5.0  # of one look for what was printed: a server that prints without a pause must not hide its own end
KEPT_MARKS = 50


class ReportedState:
    """What was reported already, kept beside the server's record so that a successor does not report it again.

    What is lost by a kill is told twice at most, and the second time is noticed by its key.

    Args:
        path: The file; made at the first change.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._kept: dict[str, dict[str, object]] = json.loads(path.read_text())  # not strict: a file of ours
        except (OSError, ValueError):
            self._kept = {}

    def get(self, mark: str, what: str) -> object:
        """Return what was kept under a start's mark, or None."""
        return self._kept.get(mark, {}).get(what)

    def keep(self, mark: str, **what: object) -> None:
        """Keep it; an unchanged value writes nothing."""
        known = self._kept.setdefault(mark, {})
        if {**known, **what} == known:
            return
        known.update(what)
        self._kept = dict(list(self._kept.items())[-KEPT_MARKS:])
        fresh = self._path.with_suffix(".tmp")
        fresh.write_text(json.dumps(self._kept))
        fresh.rename(self._path)


class HostMonitor:
    """Looks at one server again and again, and tells what it sees.

    Args:
        app: Where signals go.
        service: The watched server.
        platform: Where it runs.
        doctor: Checks it while it serves.
        folder: For what was told already.
        ours: Whether the server is our own, so that its log may be kept small.
    """

    def __init__(
        self,
        app: App,
        service: str,
        *,
        platform: HostServers,
        doctor: HostCheck,
        folder: Path,
        ours: bool = True,
    ) -> None:
        self._app = app
        self._service = service
        self._platform = platform
        self._doctor = doctor
        self._reported = ReportedState(folder / "reported.json")
        self._ours = ours
        self._followers: dict[str, LogFollower] = {}
        self._tallies: dict[str, PowerOfTwoCounter] = {}
        self._ends: dict[str, PlainEnds] = {}
        self._open: dict[str, Signal] = {}
        self._uncounted = RequestCounts()
        self._stopping = threading.Event()
        self._threads = (
            threading.Thread(target=self._run, args=(self.look, lambda: STEP_S), name="host-monitor", daemon=True),
            threading.Thread(target=self._run, args=(self.check, self._pause), name="health_check", daemon=True),
        )
        self.state: State | None = None
        self.last_check: CheckResult | None = None
        self.last_line = ""

    def start(self) -> None:
        """Look again and again in a thread, check in another: a check may wait for an answer, an end must not."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the running look and the running check end."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)

    def look(self) -> None:
        """Look once: what was printed, and what has ended.

        An end is told whatever was printed before it, and also where the log cannot be read.
        """
        state = self.state = self._platform.settled(self._service)
        for start in state.starts[-2:] if self._ours else state.starts[-1:]:  # somebody else's starts share one file
            try:
                self._follow(start, over=start.stage is Stage.ENDED)
            except SreError as error:
                log.warning("watch.log_not_read", error=str(error))
        for start in state.starts:
            over = start.stage is Stage.ENDED and not start.on_purpose
            if over and not self._reported.get(start.mark, "end"):
                self._tell([self._ended(start)])
                self._reported.keep(start.mark, end=True)
        self._again_for_people(state)

    def check(self) -> None:
        """Check once whether the server serves, where one is on record."""
        if self.state is not None:
            self._check(self.state)

    def _pause(self) -> float:
        """Seconds until the next check; soon where the last one found no health, or nothing was to be checked yet."""
        if self.state is None:
            return STEP_S
        missed = self.last_check is not None and self.last_check.missed
        return RECHECK_S if missed else CHECK_S

    def _run(self, work: Callable[[], None], pause: Callable[[], float]) -> None:
        while not self._stopping.is_set():
            try:
                work()
            except SreError as error:
                log.warning("watch.failed", error=str(error))
            except Exception:
                log.exception("watch.failed")
            self._stopping.wait(pause())

    def _follow(self, start: Start, *, over: bool) -> None:
        follower = self._followers.get(start.mark)
        if follower is None:
            kept = self._reported.get(start.mark, "offset")
            offset = kept if isinstance(kept, int) else self._platform.first_byte(self._service, start)
            path = self._platform.log_path(self._service, start)
            follower = self._followers[start.mark] = open_follower(path, offset=offset, ours=self._ours)
        until = time.monotonic() + FOLLOW_S
        offset = follower.offset
        for lines in follower.pieces(ended=over):
            self._tell(self._sights(start, lines, offset))
            self.last_line = next((line for line in reversed(lines) if line.strip()), self.last_line)
            offset = follower.offset
            self._reported.keep(start.mark, offset=offset)
            if self._stopping.is_set() or time.monotonic() >= until:
                break

    def _sights(self, start: Start, lines: list[str], offset: int) -> list[Signal]:
        """Return the telling lines; of equal ones the first, then each power of two.

        A line is named by where its piece begins, so that whoever reads on from there names it alike. Of lines that
        repeat one another only the first is matched; all are counted.
        """
        tally = self._tallies.setdefault(start.mark, PowerOfTwoCounter())
        runs = [(line, len(list(same))) for line, same in groupby(lines)]
        begins = list(accumulate((count for _, count in runs), initial=0))
        found = []
        for run, match in self._app.rules.matcher.scan([line for line, _ in runs]):
            line, count = runs[run]
            for index in range(begins[run], begins[run] + count):
                if tally.tells(match.signature):
                    key = log_key(LIVE, log_name=start.mark, insert_id=f"{offset}/{index}", timestamp="")
                    found.append(self._signal(start, key, Source.APP_LOG, line))
        return found if self._ours else [*found, *self._ends_in(start, lines, offset)]

    def _ends_in(self, start: Start, lines: list[str], offset: int) -> list[Signal]:
        """Return the ends that somebody else's log tells, in the words of systemd or Docker Compose."""
        reader = self._ends.setdefault(start.mark, PlainEnds((self._service,)))
        found = []
        for index, line in enumerate(lines):
            if (end := reader.read(line)) is not None:
                key = log_key(LIVE, log_name=start.mark, insert_id=f"{offset}/{index}/end", timestamp="")
                found.append(self._signal(start, key, Source.PLATFORM_LOG, line[:LINE_LIMIT], end=end))
        return found

    def _ended(self, start: Start) -> Signal:
        key = log_key(LIVE, log_name=start.mark, insert_id="end", timestamp="")
        says, end = f"{start.revision}: {start.says}", end_of(code=start.exit_code)
        return self._signal(start, key, Source.PLATFORM_LOG, says, severity="ERROR", end=end)

    def _check(self, state: State) -> None:
        found = self.last_check = self._doctor.check(self._service, state)
        start = state.newest
        if found is None or start is None:
            self._open = {}
            return
        self._uncounted = self._uncounted.plus(found.requests)
        self._tell_alerts(found, start)
        self._count_requests()

    def _tell_alerts(self, found: CheckResult, start: Start) -> None:
        """Tell what is wrong and what no longer is; what could not be told is told by the next check."""
        wrong = {b.rule.value: b.says for b in found.breaches if b.trouble}
        wrong |= {"sick": found.sick} if found.sick else {}
        for name, says in wrong.items():
            if name not in self._open:
                alert = self._alert(start, name, says, AlertState.OPEN)
                self._tell([alert])
                self._open[name] = alert
        for name in sorted(set(self._open) - set(wrong)):
            self._tell([self._alert(start, name, f"{name} is over", AlertState.CLOSED)])
            del self._open[name]

    def _count_requests(self) -> None:
        """Keep what was counted; what the store does not take is kept with what the next check counts."""
        if not self._uncounted.all or self._app.request_counts is None:
            return
        try:
            self._app.request_counts.add_requests(self._service, self._uncounted, at=self._app.clock.now())
        except SreError as error:
            log.warning("requests.not_kept", error=str(error))
        else:
            self._uncounted = RequestCounts()

    def _alert(self, start: Start, name: str, says: str, state: AlertState) -> Signal:
        now = self._app.clock.now().isoformat()
        opened = self._open.get(name)
        since = opened.fields["started_at"] if opened is not None else now
        alert = f"{start.mark}/{name}"
        key = alert_key(LIVE, alert_id=alert, state=state, started_at=since)
        source = Source.PROBE if name == "sick" else Source.METRIC
        made = self._signal(start, key, source, says, severity="ERROR")
        return made.with_(alert_id=alert, alert_state=state, fields={"started_at": since})

    def _signal(
        self,
        start: Start,
        key: str,
        source: Source,
        says: str,
        *,
        severity: str = "DEFAULT",
        end: End | None = None,
    ) -> Signal:
        return Signal(
            key=key,
            source=source,
            service=self._service,
            platform="host",
            revision=start.revision,
            instance=start.mark,
            at=self._app.clock.now(),
            severity=severity,
            text=says,
            end=end,
        )

    def _tell(self, signals: Iterable[Signal]) -> None:
        for signal in signals:
            signal_to_incident(self._app.contexts[Owner.INTAKE], signal)

    def _again_for_people(self, state: State) -> None:
        """Start a dead server again, once, when a person has said that what only a person could do is done."""
        if state.newest is None or state.newest.stage is not Stage.ENDED:
            return
        for incident in self._app.store.incidents(Query(run=LIVE, service=self._service, open_only=True)):
            plan = incident.plan
            done = incident.phase is Phase.VERIFYING and plan is not None and plan.by_person
            if done and plan is not None and not self._reported.get("again", plan.id):
                self._reported.keep("again", **{plan.id: True})
                self._platform.again(self._service)
                return
