"""Cells: sizes, percentiles and figures from raw rows alone."""

import pytest
from pydantic import ValidationError

from agent.core.sweep.cell import Bound, PlannedCell, Predicted, RequestRow, measured_cell, percentiles
from tests.agent.core.sweep.values import NOW


def test_a_percentile_is_a_figure_that_was_measured() -> None:
    """Nearest rank: of 1 to 200, half are at most 100, 198 are at most 198."""
    found = percentiles([None, *range(200, 0, -1)])
    assert (found.n, found.mean, found.p50, found.p90, found.p99) == (200, 100.5, 100, 180, 198)
    assert percentiles([0.25]).p99 == 0.25
    assert percentiles([None]) is None


def test_errors_stand_in_no_percentile() -> None:
    """Two requests of one second that overlap by half, and one that failed after four: rates count the whole time."""
    rows = [
        RequestRow(started_s=2.0, ttft_s=0.1, latency_s=1.0, itl_s=0.3, prompt_tokens=10, output_tokens=4),
        RequestRow(started_s=2.5, ttft_s=0.3, latency_s=1.0, itl_s=0.2, prompt_tokens=10, output_tokens=4),
        RequestRow(started_s=2.0, latency_s=4.0, error="HTTP 429"),
    ]
    found = measured_cell(rows, began_at=NOW, warmup_requests=2, unfinished=1)
    assert (found.succeeded, found.failed, found.unfinished, found.warmup_requests) == (2, 1, 1, 2)
    assert [(e.kind, e.count) for e in found.errors] == [("HTTP 429", 1)]
    assert found.duration_s == 4.0
    assert (found.input_tokens_per_s, found.output_tokens_per_s, found.requests_per_s) == (5.0, 2.0, 0.5)
    assert (found.ttft_s.n, found.ttft_s.p50, found.ttft_s.p99, found.itl_s.p99) == (2, 0.1, 0.3, 0.3)


def test_what_the_server_did_for_the_warm_up_is_not_held_against_it() -> None:
    """One answer a second, two users: the first measured request was sent at 1 s, and waited for the warm-up until 2 s."""
    rows = [RequestRow(started_s=n, ttft_s=1.0, latency_s=2.0, prompt_tokens=1, output_tokens=1) for n in (1, 2, 3, 4)]
    assert measured_cell(rows, began_at=NOW, since_s=2.0).output_tokens_per_s == 1.0
    assert measured_cell(rows, began_at=NOW).output_tokens_per_s == 0.8


def test_a_cell_without_a_single_answer_has_no_figures() -> None:
    """All failed, or none was sent."""
    assert measured_cell([RequestRow(started_s=0, latency_s=0, error="refused")], began_at=NOW).ttft_s is None
    assert measured_cell([], began_at=NOW).requests_per_s == 0


def test_the_context_holds_prompt_and_answer() -> None:
    """And leaves room for a prompt."""
    cell = PlannedCell(context_tokens=1024, output_tokens=128, concurrency=8, requests=32)
    assert (cell.prompt_tokens, cell.id) == (896, "c1024-o128-n8")
    with pytest.raises(ValidationError, match="leave no prompt"):
        cell.with_(output_tokens=1024)


def test_whether_requests_wait_is_unknown_without_a_knee() -> None:
    """Beyond the knee they wait, at it they do not."""
    at_8 = Predicted(knee=8, bound=Bound.MAX_NUM_SEQS)
    assert [at_8.waits(n) for n in (7, 8, 9)] == [False, False, True]
    assert Predicted().waits(9) is None


def test_a_step_of_a_run_of_request_rates_has_no_concurrency() -> None:
    """It has a strategy by its place in the run; a cell is one or the other, and says so."""
    steps = [
        PlannedCell(context_tokens=128, output_tokens=32, concurrency=0, requests=8, step=n, steps=4)
        for n in (1, 2, 3, 4)
    ]
    assert [step.strategy for step in steps] == ["synchronous", "throughput", "constant", "constant"]
    assert [step.id for step in steps] == [f"c128-o32-r{n}of4" for n in (1, 2, 3, 4)]
    for wrong in ({"concurrency": 1}, {"steps": 0}, {"step": 5}, {"step": 0}, {"step": 1, "steps": 2}):
        with pytest.raises(ValidationError, match=r"a cell has a concurrency|no step of"):
            steps[0].with_(**wrong)


def test_a_cell_of_a_concurrency_is_written_as_before_there_were_steps() -> None:
    """What was approved then is signed over this form."""
    cell = PlannedCell(context_tokens=1024, output_tokens=128, concurrency=8, requests=32)
    plain = {"context_tokens": 1024, "output_tokens": 128, "concurrency": 8, "requests": 32, "warmup_requests": 0}
    assert cell.model_dump(mode="json") == plain
    step = cell.with_(concurrency=0, step=3, steps=5)
    assert step.model_dump(mode="json") == plain | {"concurrency": 0, "step": 3, "steps": 5}
    assert PlannedCell.model_validate(step.model_dump(mode="json")) == step
