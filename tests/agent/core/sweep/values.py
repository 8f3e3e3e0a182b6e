"""Cells for tests."""

from datetime import UTC, datetime

from agent.core.sweep.cell import Cell, Outcome, PlannedCell, Predicted, RequestRow, measured_cell
from agent.core.sweep.provenance import Driver, Limits, Provenance

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def provenance(**changes) -> Provenance:
    base = Provenance(
        sweep="sweep-1",
        endpoint="http://127.0.0.1:8000",
        model="google/gemma-3-270m",
        served_model="gemma",
        flags="--max-num-seqs 8",
        accelerator="cpu",
        limits=Limits(max_num_seqs=8),
        driver=Driver.GUIDELLM,
        driver_version="0.8.1",
        started_at=NOW,
    )
    return base.with_(**changes)


def rows(count: int = 10, *, ttft_s: float = 0.1, itl_s: float = 0.01, tokens: int = 32) -> list[RequestRow]:
    """Requests one after the other, each slower than the last by a tenth."""
    found, at = [], 0.0
    for number in range(count):
        slower = 1 + number / 10
        latency = ttft_s * slower + itl_s * slower * (tokens - 1)
        row = RequestRow(
            started_s=at, ttft_s=ttft_s * slower, latency_s=latency, itl_s=itl_s * slower,
            prompt_tokens=96, output_tokens=tokens,
        )  # fmt: skip
        found.append(row)
        at += latency
    return found


def cell(concurrency: int = 1, *, context: int = 128, requests: list[RequestRow] | None = None, **changes) -> Cell:
    of = rows() if requests is None else requests
    planned = PlannedCell(context_tokens=context, output_tokens=32, concurrency=concurrency, requests=len(of) or 1)
    base = Cell(
        provenance=provenance(),
        planned=planned,
        predicted=Predicted(knee=8),
        outcome=Outcome.MEASURED,
        measured=measured_cell(of, began_at=NOW),
    )
    return base.with_(**changes)
