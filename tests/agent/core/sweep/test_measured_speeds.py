"""Cells become speeds of one instance; what is not whole says nothing."""

import pytest

from agent.core.sweep.cell import Outcome
from agent.core.sweep.measured_speeds import measured_speeds
from tests.agent.core.sweep import values
from tests.agent.core.sweep.rate_cells import rate_cells


def test_a_whole_cell_is_a_speed_with_its_source() -> None:
    (speed,) = measured_speeds([values.cell(4)])
    found = values.cell(4).measured
    assert found is not None
    assert (speed.model, speed.accelerator, speed.count, speed.requests) == ("google/gemma-3-270m", "cpu", 1, 4)
    assert speed.output_tokens_per_s == found.output_tokens_per_s
    assert speed.input_tokens_per_s == found.input_tokens_per_s
    assert speed.source == (
        "measured 2026-11-22 by guidellm 0.8.1: 4 requests at once, 96 tokens in and 32 out, flags --max-num-seqs 8, "
        "taken to be one instance"
    )


def test_several_instances_share_the_tokens_and_the_requests() -> None:
    (one,) = measured_speeds([values.cell(4)])
    (each,) = measured_speeds([values.cell(4, provenance=values.provenance(instances=2))])
    assert each.requests == 2
    assert each.output_tokens_per_s == pytest.approx(one.output_tokens_per_s / 2)
    assert "one instance" not in each.source


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": Outcome.PARTIAL},
        {"outcome": Outcome.DROPPED, "measured": None},
        {"provenance": values.provenance(accelerator="")},
    ],
    ids=["cut off", "never sent", "hardware not named"],
)
def test_what_is_not_whole_says_nothing(changes: dict) -> None:
    assert list(measured_speeds([values.cell(4, **changes)])) == []


def test_a_step_of_a_run_of_request_rates_is_no_speed_of_a_concurrency() -> None:
    """It names none."""
    assert list(measured_speeds(rate_cells())) == []
