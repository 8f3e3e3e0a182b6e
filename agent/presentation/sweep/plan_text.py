"""The plan of a sweep as lines for a terminal, and the progress of its run."""

from agent.core.sweep.cell import Bound, Cell, MeasuredCell, Outcome, PlannedCell
from agent.core.sweep.planning import CellPlan
from agent.core.sweep.sweep import Sweep
from agent.presentation.sweep.figure_text import load_text, planned_load_text

_SET_BY = {
    Bound.MAX_NUM_SEQS: "--max-num-seqs",
    Bound.KV_CACHE: "KV cache",
    Bound.PLATFORM_CONCURRENCY: "platform concurrency",
}
_HEADS = ("context", "answer", "at once", "requests", "knee", "time")


def plan_lines(sweep: Sweep) -> tuple[str, ...]:
    """Return what is sent where, what is predicted, and what is not sent."""
    subject, plan = sweep.subject, sweep.plan
    what = f"{subject.service or subject.endpoint.split('://')[-1]}: {subject.model}"
    on = f" on {subject.accelerator_count} x {subject.accelerator}" if subject.accelerator else ""
    rows = [_HEADS, *(_row(cell) for cell in plan.runnable)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEADS))]
    table = ["  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    dropped = [f"  not sent: {cell.planned.id}: {cell.cannot_run}" for cell in plan.cells if cell.cannot_run]
    took = f"about {_minutes(plan.duration_s)}" if plan.duration_s is not None else "time unknown (no predicted speed)"
    cost = f", about {plan.cost_usd:.2f} USD" if plan.cost_usd is not None else ""
    request = sweep.request
    most = f" and {request.max_usd:g} USD" if request.max_usd is not None else ""
    allowed = f"  at most {len(request.cells)} cells, {request.max_minutes:g} minutes{most} of load"
    longer = plan.duration_s is not None and plan.duration_s > request.max_minutes * 60
    short = ["  the plan is longer than that: the last cells may not be measured (--max-minutes)"] if longer else []
    notes = [f"  note: {note}" for note in subject.notes]
    return (f"{what}{on}", *table, *dropped, f"  {took}{cost}", allowed, *short, *notes)


def _row(cell: CellPlan) -> tuple[str, ...]:
    planned, predicted = cell.planned, cell.predicted
    knee = "unknown" if predicted.knee is None else f"{predicted.knee} ({_SET_BY[predicted.bound]})"
    sent = f"{planned.requests}" + (f" + {planned.warmup_requests} warm-up" if planned.warmup_requests else "")
    time = _minutes(predicted.duration_s) if predicted.duration_s is not None else "unknown"
    sizes = (f"{planned.context_tokens:,}", f"{planned.output_tokens:,}", planned_load_text(planned))
    return (*sizes, sent, knee, time)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def began_line(planned: PlannedCell, number: int, of: int) -> str:
    """Return that a cell begins."""
    load = f"{planned.concurrency} at once" if not planned.steps else f"{planned.steps - 2} request rates"
    each = " at each" if planned.steps else ""
    return f"[{number}/{of}] {load}, {planned.context_tokens:,} tokens of context, {planned.requests} requests{each}"


def ended_line(cell: Cell) -> str:
    """Return what came of a cell."""
    measured, load = cell.measured, f"{load_text(cell)}: " if cell.planned.steps else ""
    if measured is None or not measured.succeeded:
        return f"      {load}{cell.outcome}: {cell.why}"
    cut = (
        f" ({cell.outcome}: {cell.why})" if cell.outcome is not Outcome.MEASURED else f" ({cell.why})" * bool(cell.why)
    )
    return f"      {load}{_figures(measured)}{cut}"


def _figures(measured: MeasuredCell) -> str:
    said = [f"{measured.output_tokens_per_s:,.1f} tokens/s"]
    for name, found in (("TTFT", measured.ttft_s), ("ITL", measured.itl_s)):
        if found is not None:
            said.append(f"{name} p50 {found.p50 * 1000:,.1f} ms, p99 {found.p99 * 1000:,.1f} ms")
    kinds = ", ".join(f"{error.kind} {error.count}" for error in measured.errors)
    return "; ".join([*said, f"{measured.failed} failed{f' ({kinds})' if kinds else ''}"])
