"""Runs of request rates in the report: a sentence, a table of the steps, and one plot of latency over the rate."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent.core.sweep.cell import Cell, MeasuredCell, Outcome, Strategy
from agent.core.sweep.findings import P99_REQUESTS
from agent.core.sweep.rates import RateFindings
from agent.presentation.report.document import Plot, Section, Table
from agent.presentation.sweep.figure_text import digits, load_text, rate_text, seconds_text, tokens_text
from agent.presentation.sweep.line_plot import Knee, LinePlot, Series, line_plot

METHOD: Final = (
    "Open loop: at a constant rate requests are sent whether or not others have ended, so above what the server can do "
    "latency grows for as long as they are sent."
)

_RANKS: Final = ("p50", "p99")


def rates_text(found: RateFindings, target: str) -> str:
    """Say the highest rate that keeps to the target, and between which ends the rates lie."""
    size = f"{tokens_text(found.context_tokens)} tokens ({tokens_text(found.output_tokens)} of them output)"
    if not found.points:
        return f"{size}: no request rate was measured."
    low, high = digits(found.points[0].per_s), digits(found.points[-1].per_s)
    between = f"measured were {low} to {high} requests/s" if low != high else f"measured was {low} requests/s"
    if not target:
        return f"{size}: request rates: {between}; with --slo the highest that keeps a target is named."
    if found.highest is None:
        return f"{size}: no request rate keeps {target}: {between}."
    return f"{size}: highest request rate that keeps {target}: {digits(found.highest.per_s)} requests/s; {between}."


def rate_section(found: RateFindings, cells: Sequence[Cell]) -> Section:
    """Return the section of one run."""
    measured = [cell for cell in cells if cell.measured is not None]
    few = any(cell.measured is not None and 0 < cell.measured.succeeded < P99_REQUESTS for cell in cells)
    caution = (f"p99 of a cell with fewer than {P99_REQUESTS} requests is its slowest request.",) if few else ()
    return Section(
        title=f"Request rates, {tokens_text(found.context_tokens)} tokens",
        items=(METHOD, *caution),
        plots=(_plot(found, measured),) if measured else (),
        table=_table(found, measured) if measured else None,
    )


def _plot(found: RateFindings, cells: Sequence[Cell]) -> Plot:
    """Without the step of all requests at once, which has no rate that was sent."""
    loads = sorted(
        ((cell.request_rate, cell) for cell in cells if cell.planned.strategy is not Strategy.THROUGHPUT),
        key=lambda one: one[0] or 0.0,
    )
    known = [(rate, cell) for rate, cell in loads if rate is not None]
    title, best = "Latency over request rate", found.highest
    plot = LinePlot(
        title=title,
        unit="s",
        across="requests/s",
        series=tuple(
            Series(name=rank, points=tuple((rate, _latency(cell, rank)) for rate, cell in known)) for rank in _RANKS
        ),
        knees=(Knee(at=best.per_s, label=f"{digits(best.per_s)} requests/s", measured=True),) if best else (),
        knees_are="keeps the target up to",
        failed=tuple((rate, cell.measured.failed) for rate, cell in known if cell.measured is not None),
    )
    name = f"rates-c{found.context_tokens}-o{found.output_tokens}"
    return Plot(name=name, title=f"{title}, {found.context_tokens:,} tokens", svg=line_plot(plot))


def _latency(cell: Cell, rank: str) -> float | None:
    times = cell.measured.latency_s if cell.measured is not None else None
    return getattr(times, rank) if times is not None else None


def _table(found: RateFindings, cells: Sequence[Cell]) -> Table:
    keeps = {point.cell: point.keeps for point in found.points}
    columns = ("load", "succeeded", "failed", "answered/s", "output tokens/s")
    times = ("latency p50", "latency p99", "TTFT p50", "TTFT p99", "ITL p50", "ITL p99")
    last = ("keeps the target",) if any(kept is not None for kept in keeps.values()) else ()
    rows = tuple(
        (*_row(cell, cell.measured), *(_said(keeps, cell) for _ in last)) for cell in cells if cell.measured is not None
    )
    return Table(columns=(*columns, *times, *last), rows=rows, numbers=1)


def _row(cell: Cell, known: MeasuredCell) -> Iterator[str]:
    yield f"{load_text(cell)}{' (cut off)' if cell.outcome is Outcome.PARTIAL else ''}"
    yield from (f"{known.succeeded:,}", f"{known.failed:,}")
    yield from (
        rate_text(figure if known.succeeded else None) for figure in (known.requests_per_s, known.output_tokens_per_s)
    )
    for found in (known.latency_s, known.ttft_s, known.itl_s):
        yield from (seconds_text(getattr(found, rank, None)) for rank in _RANKS)


def _said(keeps: Mapping[str, bool | None], cell: Cell) -> str:
    kept = keeps.get(cell.id)
    return "" if kept is None else "yes" if kept else "no"
