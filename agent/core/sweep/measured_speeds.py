"""What a sweep measured, as speeds that prices are computed from."""

from collections.abc import Iterable, Iterator

from agent.core.sweep.cell import Cell, Outcome
from agent.fit.cost.offers import MeasuredSpeed


def measured_speeds(cells: Iterable[Cell]) -> Iterator[MeasuredSpeed]:
    """Return the speed of one instance for each whole cell that names its hardware; others say nothing.

    Args:
        cells: In any order, of any number of sweeps.
    """
    for cell in cells:
        made, found = cell.provenance, cell.measured
        if cell.outcome is not Outcome.MEASURED or found is None or not found.output_tokens_per_s:
            continue
        if not made.accelerator or cell.planned.steps:  # a step of a run of request rates has no concurrency
            continue
        instances = made.instances or 1
        yield MeasuredSpeed(
            model=made.model,
            accelerator=made.accelerator,
            count=made.accelerator_count,
            requests=max(1, cell.planned.concurrency // instances),
            output_tokens_per_s=found.output_tokens_per_s / instances,
            input_tokens_per_s=found.input_tokens_per_s / instances or None,
            source=_source(cell),
        )


def _source(cell: Cell) -> str:
    made, planned = cell.provenance, cell.planned
    flags = f", flags {made.flags}" if made.flags else ""
    unknown = "" if made.instances is not None else ", taken to be one instance"
    return (
        f"measured {made.started_at:%Y-%m-%d} by {made.driver} {made.driver_version}: {planned.concurrency} requests "
        f"at once, {planned.prompt_tokens:,} tokens in and {planned.output_tokens:,} out{flags}{unknown}"
    )
