"""The report of a sweep: sentences, tables and plots in reading order, whatever they are written as."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from agent.core.sweep.cell import Cell, Outcome
from agent.core.sweep.findings import P99_REQUESTS, ContextFindings, Findings
from agent.core.sweep.plateau import PlateauReason
from agent.presentation.report.document import Document, Plot, Section, Table
from agent.presentation.sweep.figure_text import NONE, digits, load_text, outcome_text, rate_text, seconds_text
from agent.presentation.sweep.heat_map import Row, Square, heat_map
from agent.presentation.sweep.line_plot import Knee, LinePlot, Series, line_plot
from agent.presentation.sweep.rate_section import rate_section
from agent.presentation.sweep.sentences import context_name, deviation_text, findings_text, predicted_text

METHOD: Final = (
    (
        "Percentiles are nearest rank over the requests of a cell that succeeded, warm-up left out: each is a figure "
        "that was really measured. ITL is the mean time between the tokens of one request."
    ),
    (
        "At once: how many requests produced tokens at the same time, from the times of each; the others had been "
        "sent and waited. Where it stays level while more are sent, they wait for the limit that is named; a limit is "
        "named only if it lies at that level."
    ),
    "Throughput is that of all requests together, from the end of the warm-up to the end of the last request.",
)


def sweep_report(found: Findings, cells: Sequence[Cell]) -> Document:
    """Put a sweep in reading order: what was found, each context, predicted beside measured, what it was made of.

    Args:
        found: What the cells say.
        cells: The same cells, in any order.
    """
    made = found.provenance
    by_id = {cell.id: cell for cell in cells}
    place = f" on {made.accelerator}" if made.accelerator else ""
    of = f"{made.service} ({made.model}{place})" if made.service else f"{made.model}{place}"
    sections = (
        Section(items=tuple(findings_text(found, cells))),
        *_overview(found, by_id),
        *(_context(context, [by_id[name] for name in context.cells]) for context in found.contexts),
        *(rate_section(run, [by_id[name] for name in run.cells]) for run in found.rates),
        *_predicted(found),
        *_not_measured(cells),
        *_errors(cells),
        _provenance(found),
        Section(title="How it was measured", items=METHOD),
    )
    return Document(title=f"Load sweep of {of}", sections=sections)


def _context(context: ContextFindings, cells: Sequence[Cell]) -> Section:
    few = any(cell.measured is not None and 0 < cell.measured.succeeded < P99_REQUESTS for cell in cells)
    caution = f"p99 of a cell with fewer than {P99_REQUESTS} requests is its slowest request." if few else ""
    measured = [cell for cell in cells if cell.measured is not None]
    return Section(
        title=context_name(context.context_tokens, context.output_tokens),
        items=(caution,) if caution else (),
        plots=tuple(_plots(context, measured)) if measured else (),
        table=_cells(context, measured) if measured else None,
    )


def _plots(context: ContextFindings, cells: Sequence[Cell]) -> Iterator[Plot]:
    name = f"c{context.context_tokens}-o{context.output_tokens}"
    knees = tuple(_knees(context))
    failed = tuple((c.planned.concurrency, c.measured.failed) for c in cells if c.measured is not None)

    def drawn(kind: str, title: str, unit: str, *series: Series, from_zero: bool = False) -> Plot:
        plot = LinePlot(title=title, unit=unit, series=series, knees=knees, failed=failed, from_zero=from_zero)
        return Plot(name=f"{kind}-{name}", title=f"{title}, {context.context_tokens:,} tokens", svg=line_plot(plot))

    yield drawn("throughput", "Throughput", "output tokens/s", _series("", cells, _throughput), from_zero=True)
    yield drawn("ttft", "Time to first token", "s", *(_series(rank, cells, _time("ttft_s", rank)) for rank in _RANKS))
    yield drawn(
        "itl", "Time between tokens", "ms", *(_series(rank, cells, _time("itl_s", rank, 1000)) for rank in _RANKS)
    )


_RANKS: Final = ("p50", "p99")


def _throughput(cell: Cell) -> float | None:
    return cell.measured.output_tokens_per_s if cell.measured is not None and cell.measured.succeeded else None


def _time(field: str, rank: str, scale: float = 1.0) -> Callable[[Cell], float | None]:
    def read(cell: Cell) -> float | None:
        times = getattr(cell.measured, field, None)
        return getattr(times, rank) * scale if times is not None else None

    return read


def _series(name: str, cells: Sequence[Cell], read: Callable[[Cell], float | None]) -> Series:
    return Series(name=name, points=tuple((cell.planned.concurrency, read(cell)) for cell in cells))


def _knees(context: ContextFindings) -> Iterator[Knee]:
    if context.predicted is not None:
        yield Knee(at=context.predicted, label=f"{context.predicted} predicted", measured=False)
    at = _level(context)
    if at is not None:
        yield Knee(at=at, label=f"{at} measured", measured=True)


def _level(context: ContextFindings) -> int | None:
    """Where requests begin to wait, as measured."""
    waits = context.plateau.reason in {PlateauReason.LIMIT, PlateauReason.UNKNOWN_LIMIT}
    return context.plateau.begins_at if waits else None


def _cells(context: ContextFindings, cells: Sequence[Cell]) -> Table:
    running = dict(context.running)
    rows = []
    for cell, known in ((cell, cell.measured) for cell in cells if cell.measured is not None):
        ttft, itl = known.ttft_s, known.itl_s
        at_once = running.get(cell.planned.concurrency)
        rows.append(
            (
                f"{cell.planned.concurrency}{' (cut off)' if cell.outcome is Outcome.PARTIAL else ''}",
                f"{known.succeeded:,}",
                f"{known.failed:,}",
                NONE if at_once is None else digits(round(at_once, 1)),
                rate_text(_throughput(cell)),
                *(seconds_text(getattr(ttft, rank, None)) for rank in ("p50", "p90", "p99")),
                *(seconds_text(getattr(itl, rank, None)) for rank in ("p50", "p90", "p99")),
            )
        )
    head = ("concurrent", "succeeded", "failed", "at once", "output tokens/s")
    times = tuple(f"{name} {rank}" for name in ("TTFT", "ITL") for rank in ("p50", "p90", "p99"))
    return Table(columns=(*head, *times), rows=tuple(rows), numbers=0)


def _overview(found: Findings, cells: dict[str, Cell]) -> Iterator[Section]:
    """The heat map, where there is more than one context and more than one concurrency."""
    loads = sorted({cell.planned.concurrency for cell in cells.values() if not cell.planned.steps})
    if len(found.contexts) < 2 or len(loads) < 2:
        return
    rows = []
    for context in found.contexts:
        squares = {cells[name].planned.concurrency: _square(cells[name]) for name in context.cells}
        rows.append(
            Row(
                name=f"{context.context_tokens:,} tokens",
                squares=tuple(squares.get(load) for load in loads),
                predicted=context.predicted,
                measured=_level(context),
            )
        )
    svg = heat_map(loads, rows)
    yield Section(title="All cells", plots=(Plot(name="throughput", title="Throughput of all cells", svg=svg),))


def _square(cell: Cell) -> Square:
    value, where = _throughput(cell), f"{cell.planned.context_tokens:,} tokens, {cell.planned.concurrency} concurrent"
    if value is None:
        return Square(value=None, text=outcome_text(cell), tooltip=f"{where}: {cell.why or outcome_text(cell)}")
    failed = cell.measured.failed if cell.measured is not None else 0
    said = f"{where}: {rate_text(value)} output tokens/s" + (f", {failed} failed" if failed else "")
    return Square(value=value, text=f"{rate_text(value)}{' !' if failed else ''}", tooltip=said)


def _predicted(found: Findings) -> Iterator[Section]:
    if not found.deviations:
        return
    rows = tuple(
        (
            one.figure,
            context_name(one.context_tokens, one.output_tokens),
            NONE if one.concurrency is None else f"{one.concurrency}",
            predicted_text(one),
            digits(one.measured),
            deviation_text(one),
        )
        for one in found.deviations
    )
    columns = ("figure", "context", "concurrent requests", "predicted", "measured", "off by")
    yield Section(title="Predicted and measured", table=Table(columns=columns, rows=rows, numbers=2))


def _not_measured(cells: Sequence[Cell]) -> Iterator[Section]:
    rows = tuple(
        (
            context_name(cell.planned.context_tokens, cell.planned.output_tokens),
            load_text(cell),
            outcome_text(cell),
            cell.why or "no reason was stored",
        )
        for cell in cells
        if cell.outcome is not Outcome.MEASURED
    )
    if rows:
        columns = ("context", "concurrent requests", "outcome", "why")
        yield Section(title="Not measured, or not to the end", table=Table(columns=columns, rows=rows, numbers=4))


def _errors(cells: Sequence[Cell]) -> Iterator[Section]:
    rows = tuple(
        (
            context_name(cell.planned.context_tokens, cell.planned.output_tokens),
            load_text(cell),
            f"{error.count:,}",
            error.kind,
        )
        for cell in cells
        if cell.measured is not None
        for error in cell.measured.errors
    )
    if rows:
        columns = ("context", "concurrent requests", "requests", "error")
        yield Section(title="Failed requests", table=Table(columns=columns, rows=rows, numbers=4))


def _provenance(found: Findings) -> Section:
    made = found.provenance
    known = made.limits
    rows = (
        ("sweep", made.sweep),
        ("began", f"{made.started_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("service", made.service),
        ("endpoint", made.endpoint.partition("://")[2]),
        ("model", f"{made.model} (served as {made.served_model})"),
        ("image", made.image),
        ("flags", "" if made.flags is None else made.flags or "none"),
        ("vLLM", made.vllm),
        ("platform", " ".join(filter(None, (made.platform, made.region)))),
        ("accelerator", f"{made.accelerator_count} x {made.accelerator}" if made.accelerator else ""),
        ("instances", "" if made.instances is None else f"{made.instances}"),
        (
            "KV cache",
            "" if known.kv_tokens is None else f"{known.kv_tokens:,} tokens (from: {known.kv_from or 'unknown'})",
        ),
        ("load generator", f"{made.driver.value} {made.driver_version}, seed {made.seed}"),
        ("answers", "exactly as long as asked (ignore_eos)" if made.ignore_eos else "as long as the model makes them"),
        ("agent", made.agent_version),
    )
    stated = tuple((name, text or "unknown") for name, text in rows if text or name not in {"service", "agent"})
    return Section(title="What was measured", table=Table(columns=("", ""), rows=stated, numbers=2))
