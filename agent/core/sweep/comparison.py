"""Comparison of two sweeps: cell by cell, each difference with an interval from the requests themselves."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import ceil
from typing import Final, Protocol, TypeVar

from agent.core.sweep.cell import Cell, RequestRow
from agent.core.sweep.findings import P99_REQUESTS, Rows, figures
from agent.core.sweep.provenance import NOT_COMPARED, Provenance
from agent.core.value import Value
from agent.errors import PolicyRefused

RESAMPLES: Final = 1_000
CONFIDENCE: Final = 0.95
LEAST_REQUESTS: Final = 10
"""With fewer requests in one of two cells nothing is said about their difference."""

METHOD: Final = (
    f"{CONFIDENCE:.0%} intervals by bootstrap: the requests of each cell are drawn anew {RESAMPLES:,} times with "
    "replacement (Efron's percentile interval, fixed seed). Each interval stands by itself: of twenty, one misses by "
    "chance. Requests that ran together slow one another, so the true intervals are somewhat wider; repeat a sweep to "
    "see how far two of the same differ."
)

FIGURES: Final = ("output_tokens_per_s", "ttft_p50", "ttft_p99", "itl_p50", "itl_p99", "error_share")
"""What is compared, by the names that targets use."""

_TIMES: Final[Mapping[str, Callable[[RequestRow], float | None]]] = {
    "ttft": lambda row: row.ttft_s,
    "itl": lambda row: row.itl_s,
}

T = TypeVar("T")


class Chance(Protocol):
    """A seeded source of draws, such as ``random.Random``."""

    def choices(self, _population: Sequence[T], /, *, k: int) -> list[T]:
        """Draw ``k`` times with replacement."""

    def betavariate(self, _alpha: float, _beta: float, /) -> float:
        """Draw from the Beta distribution, between 0 and 1."""


class Verdict(StrEnum):
    """What a difference between two cells means."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "not_distinguishable"
    TOO_FEW = "too_few_requests"


class Difference(Value):
    """One figure of one cell, before and after.

    Attributes:
        figure: A name as targets use it.
        before: In seconds, tokens per second or a share; None where it was not measured.
        after: The same of the second sweep.
        change: ``after / before - 1``; of a share of errors ``after - before``; None where either is missing.
        low: Low end of the interval of ``change``.
        high: High end.
    """

    context_tokens: int
    output_tokens: int
    concurrency: int
    figure: str
    before: float | None
    after: float | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict


class Unlike(Value):
    """Something that two sweeps do not share.

    Attributes:
        what: The field of the provenance.
        before: What it is in the first sweep; empty where nobody said.
        after: What it is in the second.
    """

    what: str
    before: str
    after: str


class Comparison(Value):
    """Two sweeps side by side.

    Attributes:
        unlike: What they do not share, beside what was to be compared.
        differences: Of every cell that both measured.
        only_before: Cells that only the first measured.
        only_after: Cells that only the second measured.
        not_compared: Steps of runs of request rates: each run has rates of its own, so no two load a server alike.
    """

    before: Provenance
    after: Provenance
    unlike: tuple[Unlike, ...] = ()
    differences: tuple[Difference, ...] = ()
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    method: str = METHOD


def unlike(before: Provenance, after: Provenance) -> tuple[Unlike, ...]:
    """Return what two sweeps do not share, field by field; ids, times and addresses do not count."""
    one, other = (
        _flat(provenance.model_dump(mode="json", exclude=set(NOT_COMPARED))) for provenance in (before, after)
    )
    return tuple(
        Unlike(what=what, before=one.get(what, ""), after=other.get(what, ""))
        for what in sorted({*one, *other})
        if one.get(what, "") != other.get(what, "")
    )


def compare(
    before: Sequence[Cell], after: Sequence[Cell], rows: tuple[Rows, Rows], *, chance: Chance, anyway: bool = False
) -> Comparison:
    """Compare two sweeps cell by cell.

    Args:
        before: Cells of the first, at least one.
        after: Cells of the second, at least one.
        rows: Raw rows of both by the id of their cell; a cell without rows gets no interval and no verdict.
        chance: Where the draws come from; the same seed gives the same intervals.
        anyway: Compare what is unlike too; what differs stands in the comparison.

    Raises:
        PolicyRefused: The sweeps differ in what they were made of, or share no measured cell.
    """
    differing = unlike(before[0].provenance, after[0].provenance)
    if differing and not anyway:
        pairs = "; ".join(
            f"{one.what}: {one.before or 'unknown'!r} and {one.after or 'unknown'!r}" for one in differing
        )
        raise PolicyRefused(
            "the sweeps were not compared",
            why=f"they are unlike in {pairs}",
            hint="if that is the question, add --anyway",
        )
    one, other = (
        {
            cell.id: cell
            for cell in cells
            if not cell.planned.steps and cell.measured is not None and cell.measured.succeeded
        }
        for cells in (before, after)
    )
    shared = sorted(one.keys() & other.keys(), key=lambda name: _place(one[name]))
    if not shared:
        raise PolicyRefused(
            "the sweeps were not compared",
            why="no cell was measured in both",
            hint="measure the second with the first one's --context and --concurrency",
        )
    return Comparison(
        before=before[0].provenance,
        after=after[0].provenance,
        unlike=differing,
        differences=tuple(
            difference
            for name in shared
            for difference in _differences(
                (one[name], other[name]), (rows[0].get(name, ()), rows[1].get(name, ())), chance
            )
        ),
        only_before=tuple(sorted(one.keys() - other.keys())),
        only_after=tuple(sorted(other.keys() - one.keys())),
        not_compared=tuple(sorted({cell.id for cell in (*before, *after) if cell.planned.steps})),
    )


def _place(cell: Cell) -> tuple[int, int, int]:
    return cell.planned.context_tokens, cell.planned.output_tokens, cell.planned.concurrency


def _flat(fields: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """The fields as text by their dotted names; what nobody said is left out."""
    found: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        elif value is not None and value != "":
            found[f"{prefix}{name}"] = str(value)
    return found


def _differences(
    cells: tuple[Cell, Cell], both: tuple[Sequence[RequestRow], Sequence[RequestRow]], chance: Chance
) -> list[Difference]:
    """Every figure of one cell; those of fewer requests than it takes have no interval."""
    context, output, concurrency = _place(cells[0])
    before, after = (figures(cell.measured) for cell in cells)
    found = []
    for figure in FIGURES:
        change = _change(figure, before[figure], after[figure])
        least = P99_REQUESTS if figure.endswith("_p99") else LEAST_REQUESTS
        ends = None
        if change is not None and min(map(len, both)) >= least:
            one, other = (
                _drawn(figure, rows, of[figure], chance) for rows, of in zip(both, (before, after), strict=True)
            )
            ends = _interval(figure, one, other)
        found.append(
            Difference(
                context_tokens=context,
                output_tokens=output,
                concurrency=concurrency,
                figure=figure,
                before=before[figure],
                after=after[figure],
                change=change,
                low=ends[0] if ends else None,
                high=ends[1] if ends else None,
                verdict=_verdict(figure, ends),
            )
        )
    return found


def _drawn(figure: str, rows: Sequence[RequestRow], measured: float | None, chance: Chance) -> list[float]:
    """The figure of each resample; a throughput is what was measured, times how far the resample's requests differ."""
    if figure == "error_share":
        failed = [float(not row.ok) for row in rows]
        return [sum(chance.choices(failed, k=len(failed))) / len(failed) for _ in range(RESAMPLES)]
    if figure == "output_tokens_per_s":
        scale = (measured or 0.0) / (_rate(rows) or 1.0)
        return [scale * _rate(chance.choices(rows, k=len(rows))) for _ in range(RESAMPLES)]
    name, rank = figure.rsplit("_p", 1)
    read = _TIMES[name]
    return _ranks([time for row in rows if row.ok and (time := read(row)) is not None], int(rank), chance)


def _rate(rows: Sequence[RequestRow]) -> float:
    """Tokens per second that one open request gets; the client keeps as many open all the time."""
    spent = sum(row.latency_s for row in rows)
    return sum(row.output_tokens for row in rows if row.ok) / spent if spent > 0 else 0.0


def _ranks(times: Sequence[float], share: int, chance: Chance) -> list[float]:
    """The percentile of each resample, drawn at once: the rank of the k-th smallest of n draws is Beta distributed."""
    ordered, n = sorted(times), len(times)
    if not n:
        return []
    k = max(ceil(share * n / 100), 1)
    return [ordered[min(int(chance.betavariate(k, n - k + 1) * n), n - 1)] for _ in range(RESAMPLES)]


def _interval(figure: str, before: Sequence[float], after: Sequence[float]) -> tuple[float, float] | None:
    changes = sorted(
        change for one, other in zip(before, after, strict=False) if (change := _change(figure, one, other)) is not None
    )
    if len(changes) < RESAMPLES:
        return None
    tail = int((1 - CONFIDENCE) / 2 * RESAMPLES)
    return changes[tail], changes[-1 - tail]


def _change(figure: str, before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    if figure == "error_share":
        return after - before
    return after / before - 1 if before > 0 else None


def _verdict(figure: str, ends: tuple[float, float] | None) -> Verdict:
    if ends is None:
        return Verdict.TOO_FEW
    low, high = ends
    if low <= 0 <= high:
        return Verdict.SAME
    return Verdict.BETTER if (low > 0) is (figure == "output_tokens_per_s") else Verdict.WORSE
