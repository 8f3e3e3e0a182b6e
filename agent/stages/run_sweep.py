"""A granted sweep runs cell by cell: each is stored at once, and every gate is asked again while it runs.

The steps of a run of request rates run together, for the load generator sets the rates from what the first two come to.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from agent.core.sweep.cell import Cell, Outcome, PlannedCell, RequestRow, measured_cell
from agent.core.sweep.grant import SweepGrant, SweepRequest
from agent.core.sweep.planning import DRIVER_START_S, STEP_START_S, CellPlan, SweepPlan
from agent.core.sweep.provenance import Provenance
from agent.core.value import digest
from agent.errors import DependencyFailed, SreError
from agent.ports.clock import machine_time
from agent.ports.control import Lease
from agent.ports.load import CellStore, LoadDriver, LoadOrder, LoadResult
from agent.ports.stage_context import StageContext
from agent.ports.tracing import Kind
from agent.stages.grant_sweep import check_grant, why_stopped

LOOK_S: Final = 0.2
LEASE_S: Final = 30.0
STOP_GRACE_S: Final = 3 * DRIVER_START_S  # a driver that ends by itself at its limit has started and sums up besides
CLOCK_STEP_S: Final = 2.0
UNREPORTED: Final = 0.05  # a cell is whole where the generator's result lacks no more of its requests than this
RESERVE_S: Final = 10.0  # charged in advance while a load generator runs, so that what a kill -9 took counts as well


class SweepEnd(StrEnum):
    """Why a run of a sweep ended."""

    DONE = "done"  # every cell is measured or dropped
    STOPPED = "stopped"  # the kill switch, or something is open on the service
    USED_UP = "used_up"  # the minutes or dollars of the grant are spent
    NO_ANSWER = "no_answer"  # the server answered no request of a cell
    FAILED = "failed"  # the driver, the disk or a store failed; or some cell has no figures


@dataclass(frozen=True, kw_only=True)
class SweepOutcome:
    """How a run of a sweep ended; ``why`` is empty where it is done."""

    end: SweepEnd
    why: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is said while it runs: a cell begins, or a run of request rates (``cell`` is None); or a cell has ended."""

    planned: PlannedCell
    number: int
    of: int
    cell: Cell | None = None


@dataclass(frozen=True, kw_only=True)
class SweepJob:
    """Everything one run needs.

    Attributes:
        order: A load order whose cell and limit are replaced.
        holder: Names this process, so that no two load one server at once.
        say: Is told the progress.
        pause: Waits for so many seconds.
    """

    plan: SweepPlan
    request: SweepRequest
    grant: SweepGrant
    provenance: Provenance
    driver: LoadDriver
    store: CellStore
    order: LoadOrder
    holder: str
    say: Callable[[Progress], None] = lambda _: None
    pause: Callable[[float], None] = time.sleep


class _Ended(Exception):
    def __init__(self, end: SweepEnd, why: str) -> None:
        super().__init__(why)
        self.end, self.why = end, why


def run_sweep(context: StageContext, job: SweepJob) -> SweepOutcome:
    """Measure every cell of the plan that is not stored yet.

    Whatever happens, what was measured is stored, and the same job goes on where this one ended.

    Raises:
        PolicyRefused: The grant does not hold; nothing was sent.
        InputRejected: What is stored is damaged.
    """
    check_grant(context, job.grant, job.request)
    about = {"sre_agent.sweep": job.request.id, "sre_agent.service": job.request.service}
    with context.tracer.span(run_sweep.__name__, attributes=about) as span:
        outcome = _run(context, job)
        span.note({"sre_agent.reason": outcome.end.value})
        return outcome


def _run(context: StageContext, job: SweepJob) -> SweepOutcome:
    end, why = SweepEnd.DONE, ""
    try:
        with closing(_Gate(context, job)) as gate:
            _run_each(context, job, gate)
    except _Ended as ended:
        end, why = ended.end, ended.why
    except DependencyFailed as error:
        end, why = SweepEnd.FAILED, context.rules.redact(error.cause)
    cells = job.store.cells()
    short = [cell.id for cell in cells if cell.outcome in {Outcome.FAILED, Outcome.PARTIAL}]
    if end is SweepEnd.DONE and short:
        end, why = SweepEnd.FAILED, f"not measured to the end: {', '.join(short)}"
    return SweepOutcome(end=end, why=why, cells=cells)


def _run_each(context: StageContext, job: SweepJob, gate: "_Gate") -> None:
    _charge_reserved(job, gate)
    todo = cells_left(job.plan, job.request, job.store.cells())
    for number, cell in enumerate(todo, start=1):
        if cell.cannot_run:
            job.store.store(_cell(job, cell, Outcome.DROPPED, why=cell.cannot_run))
            continue
        if cell.planned.step > 1:
            continue  # it ran with the first step
        job.say(Progress(planned=cell.planned, number=number, of=len(todo)))
        for step, done in enumerate(_traced(context, job, _together(cell, todo), gate)):
            job.say(Progress(planned=done.planned, number=number + step, of=len(todo), cell=done))
            if done.measured is not None and not done.measured.succeeded:
                raise _Ended(SweepEnd.NO_ANSWER, done.why)


def _charge_reserved(job: SweepJob, gate: "_Gate") -> None:
    """Charge the cell at which an earlier process was killed with what that one had reserved."""
    reserved = job.store.reserved_s()
    if not reserved:
        return
    gate.check()  # whoever reserved it is gone: only one process loads a server
    stored = {cell.id: cell for cell in job.store.cells()}
    for cell in job.plan.cells:
        spent_s = reserved.get(cell.planned.id, 0.0)
        killed = _cell(job, cell, Outcome.FAILED, why="interrupted: the process was killed")
        noted = stored.get(cell.planned.id) or killed
        if spent_s > noted.charged_s:
            job.store.store(noted.with_(spent_s=spent_s))
    job.store.reserve({})


def _together(first: CellPlan, todo: Sequence[CellPlan]) -> tuple[CellPlan, ...]:
    """Return the cells that the load generator measures together with this one."""
    return (first, *(cell for cell in todo if cell.planned.step > 1 and _run_of(cell) == _run_of(first)))


def _run_of(cell: CellPlan) -> tuple[int, ...]:
    """What the steps of one run of request rates share."""
    planned = cell.planned
    return planned.context_tokens, planned.output_tokens, planned.steps, planned.requests


class _Gate:
    """Asks everything that may stop a sweep; doubt stops it."""

    def __init__(self, context: StageContext, job: SweepJob) -> None:
        self._context, self._job = context, job
        self._name = f"sweep-{digest(job.request.endpoint)[:24]}"
        self._lease: Lease | None = None
        self._renew_at = 0.0

    def close(self) -> None:
        """Give the server back to whoever else wants to load it; what cannot be given back ends by itself."""
        if self._lease is not None:
            with suppress(SreError):
                self._context.control_store().release(self._lease)

    def check(self) -> None:
        """Return where load may be sent now.

        Raises:
            _Ended: It may not.
            DependencyFailed: Nobody knows.
        """
        why = why_stopped(self._context, self._job.request.service)
        if why:
            raise _Ended(SweepEnd.STOPPED, why)
        now = self._context.clock.now()
        if now >= self._job.grant.expires_at:
            raise _Ended(SweepEnd.USED_UP, f"the approval expired at {self._job.grant.expires_at:%Y-%m-%d %H:%M} UTC")
        if time.monotonic() >= self._renew_at:
            control, holder = self._context.control_store(), self._job.holder
            self._lease = control.acquire(self._name, holder, for_s=LEASE_S, now=now)
            if self._lease is None:
                raise _Ended(SweepEnd.STOPPED, f"another sweep loads {self._job.request.endpoint}, or did a moment ago")
            self._renew_at = time.monotonic() + LEASE_S / 3


def cells_left(plan: SweepPlan, request: SweepRequest, stored: Sequence[Cell]) -> tuple[CellPlan, ...]:
    """Return the cells that are still to be measured or noted as dropped; what was not granted is none of them.

    Of a run of request rates these are all steps, or none.
    """
    over = {cell.id for cell in stored if cell.outcome in {Outcome.MEASURED, Outcome.DROPPED}}
    allowed = set(request.cells)
    steps = [cell for cell in plan.cells if cell.planned.steps and not cell.cannot_run]
    runs = {_run_of(cell) for cell in steps if cell.planned.id not in over}
    runs -= {_run_of(cell) for cell in steps if cell.planned not in allowed}

    def is_left(cell: CellPlan) -> bool:
        if cell in steps:
            return _run_of(cell) in runs
        return cell.planned.id not in over and bool(cell.cannot_run or cell.planned in allowed)

    return tuple(filter(is_left, plan.cells))


def _traced(context: StageContext, job: SweepJob, run: Sequence[CellPlan], gate: _Gate) -> tuple[Cell, ...]:
    """Measure in a span of its own; that the sweep ends meanwhile is its reason and no failure of it."""
    about = {"sre_agent.sweep": job.request.id, "sre_agent.cell": run[0].planned.id}
    with context.tracer.span("measure_cell", kind=Kind.CLIENT, attributes=about) as span:
        try:
            made = _measure(context, job, run, gate)
        except _Ended as error:
            span.note({"sre_agent.reason": error.end.value})
            ended = error
        else:
            span.note({"sre_agent.reason": made[0].outcome.value})
            return made
    raise ended


def _measure(context: StageContext, job: SweepJob, run: Sequence[CellPlan], gate: _Gate) -> tuple[Cell, ...]:
    """Run one cell, or the steps of one run of request rates, and store what came of each.

    What it took of the grant is stored however it ends.
    """
    first = run[0]
    before = next((kept for kept in job.store.cells() if kept.id == first.planned.id), None)
    limit_s = _left_s(job, starts_s=_starts_s(first.planned))
    gate.check()
    watch = _Stopwatch(context, spent_s=before.charged_s if before is not None else 0.0)
    try:
        made = _stored(context, job, run, _load(job, first, gate, watch, limit_s), watch)
        job.store.reserve({})
    except BaseException as error:
        why = error.cause if isinstance(error, SreError) else str(error) or type(error).__name__
        noted = before or _cell(job, first, Outcome.FAILED, why=f"interrupted: {context.rules.redact(why)}")
        with suppress(SreError):  # the reason why it ended is told, not that this could not be stored either
            job.store.store(noted.with_(spent_s=watch.spent_s))
            job.store.reserve({})
        raise
    return made


class _Stopwatch:
    """How long a cell has taken, and by how much the clock was set meanwhile."""

    def __init__(self, context: StageContext, *, spent_s: float) -> None:
        self._clock, self._before_s = context.clock, spent_s
        self._began, self._at = time.monotonic(), machine_time(context.clock)

    @property
    def took_s(self) -> float:
        return time.monotonic() - self._began

    @property
    def spent_s(self) -> float:
        """With earlier tries."""
        return self._before_s + self.took_s

    @property
    def stepped_s(self) -> float:
        return (machine_time(self._clock) - self._at - timedelta(seconds=self.took_s)).total_seconds()


def _load(job: SweepJob, cell: CellPlan, gate: _Gate, watch: _Stopwatch, limit_s: float) -> LoadResult:
    """Let the load generator run, and ask every gate while it does."""
    reserved_s = _reserve(job, cell, watch)
    load_s = limit_s - _starts_s(cell.planned)
    run = job.driver.start(job.order.with_(cell=cell.planned, limit_s=load_s))
    try:
        while (result := run.result()) is None:
            gate.check()
            if watch.spent_s + 2 * LOOK_S > reserved_s:
                reserved_s = _reserve(job, cell, watch)
            if watch.took_s > limit_s + STOP_GRACE_S:
                raise _Ended(SweepEnd.USED_UP, f"{_grant_words(job.request)} are used up; the last cell was cut off")
            job.pause(LOOK_S)
    finally:
        run.stop()
    return result


def _reserve(job: SweepJob, cell: CellPlan, watch: _Stopwatch) -> float:
    reserved_s = watch.spent_s + RESERVE_S
    job.store.reserve({cell.planned.id: reserved_s})
    return reserved_s


def _left_s(job: SweepJob, *, starts_s: float) -> float:
    """Return the seconds that the grant still allows; ``starts_s`` of them are no load."""
    request = job.request
    used_s = sum(cell.charged_s for cell in job.store.cells())
    left = [request.max_minutes * 60 - used_s]
    if request.max_usd is not None and request.usd_per_h:
        left.append(request.max_usd / request.usd_per_h * 3600 - used_s)
    if min(left) < 1:
        raise _Ended(SweepEnd.USED_UP, f"{_grant_words(request)} are used up")
    if min(left) < 1 + starts_s:
        starts = f"the workers of a run of request rates start for {starts_s:.0f} s"
        raise _Ended(SweepEnd.USED_UP, f"of {_grant_words(request)} {min(left):.0f} s are left, and {starts}")
    return min(left)


def _starts_s(planned: PlannedCell) -> float:
    """What the load generator takes to start its workers anew for each further step of a run of request rates."""
    return STEP_START_S * max(planned.steps - 1, 0)


def _grant_words(request: SweepRequest) -> str:
    dollars = f" or {request.max_usd:g} USD" if request.max_usd is not None else ""
    return f"the {request.max_minutes:g} minutes{dollars} of the approval"


def _stored(
    context: StageContext, job: SweepJob, run: Sequence[CellPlan], result: LoadResult, watch: _Stopwatch
) -> tuple[Cell, ...]:
    """Store what a driver measured; a step after the first is charged its own time, and the first all the rest."""
    results = (result, *result.following)
    charged = {cell.id: cell.charged_s for cell in job.store.cells()}
    made = [_made(context, job, cell, one, watch) for cell, one in zip(run, results, strict=False)]
    after_s = [cell.measured.duration_s if cell.measured is not None else 0.0 for cell, _ in made[1:]]
    took_s = [max(watch.took_s - sum(after_s), 0.0), *after_s]
    stored = [
        job.store.store(cell.with_(spent_s=charged.get(cell.id, 0.0) + spent_s), rows)
        for (cell, rows), spent_s in zip(made, took_s, strict=True)
    ]
    last = results[-1]
    for cell in run[len(results) :]:
        outcome, why = Outcome.FAILED, "the load generator ended before this rate"
        if last.over_saturated and last.rate is not None:
            outcome, why = Outcome.DROPPED, f"the server was over-saturated at {last.rate:.3g} requests/s already"
        unsent = _cell(job, cell, outcome, why=why).with_(spent_s=charged.get(cell.planned.id, 0.0))
        stored.append(job.store.store(unsent))
    return tuple(stored)


def _made(
    context: StageContext, job: SweepJob, cell: CellPlan, result: LoadResult, watch: _Stopwatch
) -> tuple[Cell, tuple[RequestRow, ...]]:
    """Return one cell and its rows: percentiles from the raw rows, without those that warmed the server up."""
    warm = cell.planned.warmup_requests
    if result.over_saturated and len(result.rows) <= warm and any(row.ok for row in result.rows):
        why = f"over-saturated within the warm-up: {len(result.rows)} of {warm} requests ended"
        return _cell(job, cell, Outcome.DROPPED, why=why), ()
    rows = tuple(_redacted(context, row) for row in result.rows[warm:])
    measured = measured_cell(
        rows,
        began_at=result.began_at,
        warmup_requests=min(warm, len(result.rows)),
        unfinished=result.unfinished,
        since_s=max((row.started_s + row.latency_s for row in result.rows[:warm]), default=None),
    )
    outcome, why = Outcome.MEASURED, ""
    if not measured.succeeded:
        kinds = ", ".join(f"{e.kind} ({e.count})" for e in measured.errors) or _of_all(result) or "no request ended"
        outcome, why = Outcome.FAILED, f"no request succeeded: {kinds}"
    elif abs(stepped_s := watch.stepped_s) > CLOCK_STEP_S:
        outcome, why = Outcome.FAILED, f"the clock of this machine was set by {stepped_s:+.0f} s meanwhile"
    elif result.over_saturated:
        why = f"over-saturated: ended after {len(rows)} of {cell.planned.requests} requests"
    elif result.unfinished:
        outcome, why = Outcome.PARTIAL, f"{len(rows)} of {cell.planned.requests} requests ended in time"
    elif (missing := cell.planned.requests - len(rows)) > 0:
        why = f"the load generator says nothing about {missing} of {cell.planned.requests} requests"
        outcome = Outcome.PARTIAL if missing > UNREPORTED * cell.planned.requests else Outcome.MEASURED
    return _cell(job, cell, outcome, why=why).with_(measured=measured, rate=result.rate), rows


def _of_all(result: LoadResult) -> str:
    """Return why requests failed where none came beyond the warm-up."""
    return ", ".join(sorted({row.error for row in result.rows if row.error}))


def _redacted(context: StageContext, row: RequestRow) -> RequestRow:
    return row.with_(error=context.rules.redact(row.error)) if row.error else row


def _cell(job: SweepJob, cell: CellPlan, outcome: Outcome, *, why: str) -> Cell:
    return Cell(provenance=job.provenance, planned=cell.planned, predicted=cell.predicted, outcome=outcome, why=why)
