"""Cells of a run of request rates, of a server whose latency grows with the rate."""

from agent.core.sweep.cell import Cell, Outcome, PlannedCell, measured_cell
from tests.agent.core.sweep.values import NOW, provenance, rows


def rate_cells(latencies_s=(0.4, 0.5, 2.0), *, count=10, sent=None, context=128) -> tuple[Cell, ...]:
    """One at a time, all at once, and rates of 2, 4, 6 ... requests per second whose requests take so long each."""
    steps, found = len(latencies_s) + 2, []
    for step in range(1, steps + 1):
        takes = 0.3 if step == 1 else 5.0 if step == 2 else latencies_s[step - 3]
        of = [
            row.with_(started_s=number * 0.1, ttft_s=takes / 2, latency_s=takes, itl_s=takes / 62)
            for number, row in enumerate(rows(count if sent is None or step < 3 else sent[step - 3]))
        ]
        planned = PlannedCell(
            context_tokens=context, output_tokens=32, concurrency=0, requests=count, step=step, steps=steps
        )
        found.append(
            Cell(
                provenance=provenance(),
                planned=planned,
                outcome=Outcome.MEASURED,
                measured=measured_cell(of, began_at=NOW),
                rate=2.0 * (step - 2) if step > 2 else None,
            )
        )
    return tuple(found)
