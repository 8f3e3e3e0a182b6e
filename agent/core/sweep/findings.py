"""Findings of a sweep: each context's plateau and its cause, the best setting for a target, how right the fit was."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Final

from agent.core.sweep.cell import Bound, Cell, MeasuredCell, Outcome, RequestRow
from agent.core.sweep.plateau import (
    Limit,
    LoadPoint,
    Plateau,
    PlateauReason,
    arrive_in_bundles,
    find_plateau,
    running_at_once,
    running_by_little,
)
from agent.core.sweep.provenance import Provenance
from agent.core.sweep.rates import RateFindings, find_rates
from agent.core.sweep.target import Condition, Target
from agent.core.value import Value

P99_REQUESTS: Final = 100
"""With fewer requests the 99th percentile is the slowest of them and says little."""

Rows = Mapping[str, Sequence[RequestRow]]
"""The raw rows by the id of their cell."""


class Deviation(Value):
    """One predicted figure beside what was measured.

    Attributes:
        figure: What was predicted, with its unit.
        concurrency: Of the cell; None for a figure of the whole context.
        low: Low end of the prediction; equal to ``high`` where one number was predicted.
        high: High end.
        off: How far the measured figure lies outside the prediction, as a share of its nearer end; below 0 where less
            was measured than predicted, 0 inside.
    """

    figure: str
    context_tokens: int
    output_tokens: int
    concurrency: int | None = None
    low: float
    high: float
    measured: float
    off: float


class ContextFindings(Value):
    """What the cells of one context length and answer length say.

    Attributes:
        cells: Their ids, by concurrency.
        running: Requests that produced tokens at once, per concurrency measured.
        estimated: ``running`` comes from mean times and not from the times of each request.
        bundled: Concurrencies at which tokens arrived in bundles, so that ``running`` is not known.
        limits: Known limits of the requests that run at once, the lowest first.
        predicted: Requests that run at once, as predicted; None where nothing was.
    """

    context_tokens: int
    output_tokens: int
    cells: tuple[str, ...]
    running: tuple[tuple[int, float], ...] = ()
    estimated: bool = False
    bundled: tuple[int, ...] = ()
    limits: tuple[Limit, ...] = ()
    plateau: Plateau
    predicted: int | None = None


class Verdict(StrEnum):
    """Whether a target was kept."""

    MET = "met"
    NOT_MET = "not_met"
    NOT_MEASURED = "not_measured"


class Goodput(Value):
    """Requests that each kept to the target, at the setting with the most of them.

    Attributes:
        requests_per_s: Of those that kept to it.
        share: Of all requests of the cell, failed ones included.
    """

    cell: str
    concurrency: int
    requests_per_s: float
    share: float


class BestSetting(Value):
    """The best measured setting for a target, for one context length.

    Attributes:
        cell: The cell with the highest throughput of those that meet it, else the one that misses it by least; empty
            where nothing was measured.
        missed: The conditions that this cell misses.
        goodput: None where the target bounds no single request, or no raw rows are there.
    """

    context_tokens: int
    output_tokens: int
    verdict: Verdict
    cell: str = ""
    concurrency: int | None = None
    missed: tuple[Condition, ...] = ()
    goodput: Goodput | None = None


class Findings(Value):
    """Everything that a sweep says, beside its cells.

    Attributes:
        target: As it was written; empty without one.
        best: One per context length, with a target.
        rates: What runs of request rates say, one per context length that has one.
    """

    provenance: Provenance
    contexts: tuple[ContextFindings, ...]
    target: str = ""
    best: tuple[BestSetting, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    rates: tuple[RateFindings, ...] = ()


def find(cells: Sequence[Cell], rows: Rows, target: Target | None = None) -> Findings:
    """Say what a sweep measured.

    Args:
        cells: Of one sweep, at least one, in any order.
        rows: Raw rows of as many cells as have them; without them the requests that run at once are estimated.
        target: What a setting must keep to.
    """
    closed = (cell for cell in cells if not cell.planned.steps)
    ordered = sorted(closed, key=lambda cell: (*_size(cell), cell.planned.concurrency))
    groups = [(size, tuple(group)) for size, group in groupby(ordered, key=_size)]
    contexts = tuple(_context(group, rows) for _, group in groups)
    return Findings(
        provenance=cells[0].provenance,
        contexts=contexts,
        target=target.text if target else "",
        best=tuple(_best(group, target, rows) for _, group in groups) if target else (),
        deviations=tuple(
            deviation
            for (_, group), context in zip(groups, contexts, strict=True)
            for deviation in (*_of_plateau(context), *_of_speed(group), *_of_time(group))
        ),
        rates=find_rates(cells, target, {cell.id: figures(cell.measured) for cell in cells}),
    )


def figures(measured: MeasuredCell | None) -> dict[str, float | None]:
    """Return the figures of one cell by the names that a target uses; None where a figure was not measured."""
    if measured is None:
        return {}
    times = (("ttft", measured.ttft_s), ("itl", measured.itl_s), ("latency", measured.latency_s))
    found: dict[str, float | None] = {
        f"{name}_{rank}": getattr(known, rank) if known is not None else None
        for name, known in times
        for rank in ("p50", "p90", "p99")
    }
    requests = measured.succeeded + measured.failed
    found["output_tokens_per_s"] = measured.output_tokens_per_s if measured.succeeded else None
    found["error_share"] = measured.failed / requests if requests else None
    return found


def limits_of(cell: Cell) -> tuple[Limit, ...]:
    """Return what is known to limit the requests of a cell's size that run at once, the lowest first."""
    known, engines = cell.provenance.limits, cell.provenance.instances or 1
    found = []
    if known.max_num_seqs is not None:
        found.append(Limit(bound=Bound.MAX_NUM_SEQS, requests=known.max_num_seqs * engines))
    held = _held(cell, engines)
    if held is not None:
        found.append(Limit(bound=Bound.KV_CACHE, requests=round(held, 2)))
    if known.platform_concurrency is not None:
        found.append(Limit(bound=Bound.PLATFORM_CONCURRENCY, requests=known.platform_concurrency))
    return tuple(sorted(found, key=lambda limit: limit.requests))


def _held(cell: Cell, engines: int) -> float | None:
    """Requests that the KV cache holds: as computed, for with sliding windows it is no quotient of tokens."""
    knee, tokens = cell.predicted.knee, cell.provenance.limits.kv_tokens
    if knee is not None and cell.predicted.bound is Bound.KV_CACHE:
        return float(knee)
    return max(tokens * engines / cell.planned.context_tokens, knee or 0) if tokens is not None else None


def _size(cell: Cell) -> tuple[int, int]:
    return cell.planned.context_tokens, cell.planned.output_tokens


def _context(group: Sequence[Cell], rows: Rows) -> ContextFindings:
    loads = [(cell, cell.measured) for cell in group if cell.measured is not None and cell.measured.succeeded]
    exact = all(rows.get(cell.id) for cell, _ in loads)
    running = tuple(
        (cell.planned.concurrency, found)
        for cell, measured in loads
        if (found := _at_once(rows[cell.id]) if exact else _estimated(cell, measured)) is not None
    )
    by_concurrency = dict(running)
    points = [
        LoadPoint(
            concurrency=cell.planned.concurrency,
            running=by_concurrency.get(cell.planned.concurrency),
            output_tokens_per_s=measured.output_tokens_per_s,
        )
        for cell, measured in loads
    ]
    first = group[0]
    return ContextFindings(
        context_tokens=first.planned.context_tokens,
        output_tokens=first.planned.output_tokens,
        cells=tuple(cell.id for cell in group),
        running=running,
        estimated=bool(running) and not exact,
        bundled=tuple(cell.planned.concurrency for cell, _ in loads if _is_bundled(rows.get(cell.id, ()))),
        limits=limits_of(first),
        plateau=find_plateau(points, limits_of(first), exact=exact),
        predicted=next((cell.predicted.knee for cell in group if cell.predicted.knee is not None), None),
    )


def _at_once(rows: Sequence[RequestRow]) -> float | None:
    """Return how many ran at once; None where the times of tokens do not say it."""
    return None if _is_bundled(rows) else running_at_once(_decoding(rows)) or None


def _is_bundled(rows: Sequence[RequestRow]) -> bool:
    return arrive_in_bundles([row.itl_s for row in rows if row.ok and row.itl_s is not None])


def _decoding(rows: Sequence[RequestRow]) -> Iterable[tuple[float, float]]:
    return ((r.started_s + r.ttft_s, r.started_s + r.latency_s) for r in rows if r.ok and r.ttft_s is not None)


def _estimated(cell: Cell, measured: MeasuredCell) -> float | None:
    if measured.ttft_s is None or measured.latency_s is None or cell.planned.output_tokens == 1:
        return None
    return running_by_little(
        cell.planned.concurrency, first_token_s=measured.ttft_s.mean, latency_s=measured.latency_s.mean
    )


def _best(group: Sequence[Cell], target: Target, rows: Rows) -> BestSetting:
    context, output = _size(group[0])
    known = [(cell, figures(cell.measured)) for cell in group if cell.measured is not None and cell.measured.succeeded]
    if not known:
        return BestSetting(context_tokens=context, output_tokens=output, verdict=Verdict.NOT_MEASURED)
    good = [(cell, found) for cell, found in known if target.is_met(found)]
    if good:
        cell, found = max(good, key=lambda one: (one[1]["output_tokens_per_s"] or 0.0, -one[0].planned.concurrency))
    else:
        cell, found = min(known, key=lambda one: (target.miss(one[1]), one[0].planned.concurrency))
    return BestSetting(
        context_tokens=context,
        output_tokens=output,
        verdict=Verdict.MET if good else Verdict.NOT_MET,
        cell=cell.id,
        concurrency=cell.planned.concurrency,
        missed=target.missed(found),
        goodput=_most_goodput((cell for cell, _ in known), target, rows),
    )


def _most_goodput(cells: Iterable[Cell], target: Target, rows: Rows) -> Goodput | None:
    """Return the highest rate of requests that each keep to the target; of equal ones the lowest concurrency."""
    bounds = target.request_bounds_s
    found = []
    for cell in cells:
        sent, took = rows.get(cell.id, ()), cell.measured.duration_s if cell.measured is not None else 0.0
        if not (bounds and sent and took > 0):
            continue
        kept = sum(_keeps(row, bounds) for row in sent)
        found.append(
            Goodput(
                cell=cell.id,
                concurrency=cell.planned.concurrency,
                requests_per_s=kept / took,
                share=kept / len(sent),
            )
        )
    return max(found, key=lambda one: (one.requests_per_s, -one.concurrency), default=None)


def _keeps(row: RequestRow, bounds: Mapping[str, float]) -> bool:
    """Whether one request keeps to every bound; with one token there is no time between tokens to keep to."""
    if not row.ok or row.ttft_s is None:
        return False
    took = {"ttft": row.ttft_s, "itl": row.itl_s or 0.0, "latency": row.latency_s}
    return all(took[name] <= bound for name, bound in bounds.items())


def _of_plateau(context: ContextFindings) -> Iterable[Deviation]:
    begins_at, reason = context.plateau.begins_at, context.plateau.reason
    if (
        context.predicted is None
        or begins_at is None
        or reason not in {PlateauReason.LIMIT, PlateauReason.UNKNOWN_LIMIT}
    ):
        return
    yield _deviation(
        "requests at once",
        (context.context_tokens, context.output_tokens, None),
        (context.predicted, context.predicted),
        begins_at,
    )


def _of_speed(group: Sequence[Cell]) -> Iterable[Deviation]:
    for cell in group:
        itl, predicted = cell.measured.itl_s if cell.measured else None, cell.predicted.output_tokens_per_s
        if predicted is not None and itl is not None and itl.p50 > 0:
            place = (*_size(cell), cell.planned.concurrency)
            yield _deviation("tokens/s of one request", place, predicted, 1 / itl.p50)


def _of_time(group: Sequence[Cell]) -> Iterable[Deviation]:
    """The time of a context's cells together, for as many requests as were measured to the end."""
    predicted = measured = 0.0
    for cell in group:
        if cell.outcome is Outcome.MEASURED and cell.measured is not None and cell.predicted.duration_s is not None:
            sent = cell.planned.requests + cell.planned.warmup_requests
            predicted += cell.predicted.duration_s * cell.planned.requests / sent
            measured += cell.measured.duration_s
    if predicted > 0:
        yield _deviation("seconds without warm-up", (*_size(group[0]), None), (predicted, predicted), measured)


def _deviation(
    figure: str, place: tuple[int, int, int | None], ends: tuple[float, float], measured: float
) -> Deviation:
    low, high = ends
    end = min(max(measured, low), high)
    return Deviation(
        figure=figure,
        context_tokens=place[0],
        output_tokens=place[1],
        concurrency=place[2],
        low=low,
        high=high,
        measured=measured,
        off=round((measured - end) / end, 4) if end else 0.0,
    )
