"""Reports of sweeps for tests: a known server, one with everything that goes wrong, and hostile text."""

from agent.core.sweep.cell import Cell, Outcome, PlannedCell
from agent.core.sweep.findings import find
from agent.core.sweep.target import read_target
from agent.presentation.sweep.report import sweep_report
from tests.agent.core.sweep.served import sweep_of

HOSTILE = "<script>alert(1)</script> | `x` [a](https://evil.example) \x1b[2J \u202e & <img src=x>"


def lost(made, concurrency, outcome, why):
    planned = PlannedCell(context_tokens=4096, output_tokens=32, concurrency=concurrency, requests=10)
    return Cell(provenance=made, planned=planned, outcome=outcome, why=why)


def report_of_a_known_server(slo=None):
    cells, rows = sweep_of(8)
    return sweep_report(find(cells, rows, read_target(slo) if slo else None), cells)


def report_of_everything():
    """Two contexts, failed requests, a cell that was not sent, one that failed, and others' text everywhere."""
    cells, rows = sweep_of(8, failing=12, model=HOSTILE, flags=HOSTILE, image=HOSTILE, service="")
    made = cells[0].provenance
    cells = (*cells, lost(made, 1, Outcome.DROPPED, HOSTILE), lost(made, 2, Outcome.FAILED, ""))
    return sweep_report(find(cells, rows, read_target("ttft_p99<1s")), cells)
