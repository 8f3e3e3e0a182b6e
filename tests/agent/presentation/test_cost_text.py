"""The cost of a model in words: a table, where to run it, what is missed, old and unknown prices."""

from dataclasses import replace
from datetime import date

import pytest

from agent.app.cost_answers import CostAnswers, OwnHardware
from agent.fit.cost.load import Load
from agent.fit.cost.offers import MeasuredSpeed
from agent.fit.question import question_from
from agent.presentation.cost_text import cost_text

MODEL = "google/gemma-4-12B-it-qat-w4a16-ct"
ROW = {"model": MODEL, "accelerator": "nvidia-l4", "flags": "--max-model-len 8192 --gpu-memory-utilization 0.9"}


@pytest.fixture(scope="module")
def costs():
    return CostAnswers.open(date(2026, 11, 22))


def test_the_table_and_what_stands_below_it(costs):
    own = OwnHardware(price_usd=3000, years=3, watts=350, usd_per_kwh=0.3, idle_watts=50)
    load = Load(busy=0.3, min_instances=1)
    text = cost_text(costs.answer(question_from(ROW), load, accelerator="nvidia-l4", own=own))
    lines = text.splitlines()
    assert lines[0] == f"{MODEL}: 30% busy, 1 request at once, at least 1 running"
    assert lines[2].split() == [
        *["platform", "shape", "USD/h", "USD/month", "tokens/s"], "USD/M", "output", "USD/M", "input", "needs",
    ]  # fmt: skip
    # 3,000 / 26,280 + (350 x 0.3 + 50 x 0.7) W = 0.14 kW x 0.3: 0.1562 an hour, 114 a month
    assert lines[3].split()[:4] == ["own", "own-hardware", "0.16", "114"]
    assert (
        "where to run it: own-hardware (own, where it stands), the cheapest that meets the needs: 114 USD/month" in text
    )
    assert "its speed is computed, not measured" in text
    assert "price of 2026-08-01, 113 days old, look it up before you rely on it: cloud-run-l4-small" in text


def test_a_measured_speed_is_marked_and_input_is_priced(costs):
    """0.8048 USD/h over 800 x 3,600 tokens of prompts: 0.28 a million."""
    cell = MeasuredSpeed(model=MODEL, accelerator="nvidia-l4", count=1, requests=1, output_tokens_per_s=80.0,
                         input_tokens_per_s=800.0, source="a sweep")  # fmt: skip
    found = replace(costs, measured=(cell,)).answer(question_from(ROW), Load(), accelerator="nvidia-l4")
    row = next(line for line in cost_text(found).splitlines() if "ec2-g6.xlarge " in line)
    assert "80 measured" in row
    assert row.split()[-2:] == ["0.28", "met"]


def test_nothing_that_meets_the_needs_is_said_with_the_reason(costs):
    row = {**ROW, "model": "google/gemma-4-31B-it", "flags": "--max-model-len 8192"}
    text = cost_text(costs.answer(question_from(row), Load(), accelerator="nvidia-l4", platform="cloud_run"))
    assert "where to run it: nothing here that has a price meets the needs" in text
    assert "cloud-run-l4: does not fit (" in text


def test_an_unknown_price_is_unknown(costs):
    shapes = tuple(replace(shape, usd_per_h=None) for shape in costs.platforms.shapes if shape.name == "ec2-g6.xlarge")
    none = replace(costs, platforms=replace(costs.platforms, shapes=shapes))
    text = cost_text(none.answer(question_from(ROW), Load(), accelerator="nvidia-l4"))
    assert "unknown price: ec2-g6.xlarge" in text
    assert "where to run it: nothing here" in text
