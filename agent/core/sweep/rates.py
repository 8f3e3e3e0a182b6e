"""What a run of request rates says: latency over the rate, and the highest rate that keeps to a target."""

from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile

from agent.core.sweep.cell import Cell, Outcome
from agent.core.sweep.target import Target
from agent.core.value import Value


class RatePoint(Value):
    """One constant rate that was measured.

    Attributes:
        cell: Its name.
        per_s: Requests per second that were sent.
        keeps: Whether it keeps to the target; None without one. A cell that was cut off does not.
    """

    cell: str
    per_s: float
    keeps: bool | None = None


class RateFindings(Value):
    """What the run of request rates of one context length and answer length says.

    Attributes:
        cells: Names of all its steps, in order.
        points: The constant rates, by rate.
        highest: With a target the highest rate up to which every measured rate keeps to it; None where none does.
    """

    context_tokens: int
    output_tokens: int
    cells: tuple[str, ...]
    points: tuple[RatePoint, ...] = ()
    highest: RatePoint | None = None


def find_rates(
    cells: Sequence[Cell], target: Target | None, figures: Mapping[str, Mapping[str, float | None]]
) -> tuple[RateFindings, ...]:
    """Say what runs of request rates measured, by size.

    Args:
        cells: Of one sweep; those that are no step of such a run are left out.
        target: What a rate must keep to.
        figures: Of each cell by its name, as targets name them.
    """
    steps = sorted((cell for cell in cells if cell.planned.steps), key=lambda cell: (*_size(cell), cell.planned.step))
    return tuple(_found(tuple(group), target, figures) for _, group in groupby(steps, key=_size))


def _size(cell: Cell) -> tuple[int, int]:
    return cell.planned.context_tokens, cell.planned.output_tokens


def _found(
    steps: Sequence[Cell], target: Target | None, figures: Mapping[str, Mapping[str, float | None]]
) -> RateFindings:
    points = sorted(
        (
            RatePoint(
                cell=step.id,
                per_s=step.rate,
                keeps=_is_whole(step) and target.is_met(figures[step.id]) if target is not None else None,
            )
            for step in steps
            if step.rate is not None and step.measured is not None and step.measured.succeeded
        ),
        key=lambda point: point.per_s,
    )
    kept = tuple(takewhile(lambda point: point.keeps, points))
    return RateFindings(
        context_tokens=steps[0].planned.context_tokens,
        output_tokens=steps[0].planned.output_tokens,
        cells=tuple(step.id for step in steps),
        points=tuple(points),
        highest=kept[-1] if kept else None,
    )


def _is_whole(step: Cell) -> bool:
    """Whether every request ended; one that the generator ended as over-saturated shows no lasting rate."""
    known = step.measured
    sent = known.succeeded + known.failed if known is not None else 0
    return step.outcome is Outcome.MEASURED and sent >= step.planned.requests
