"""The answer as programs read it: keys, ages, unknown figures."""

from datetime import date

import pytest

from agent.app.cost_answers import CostAnswers, OwnHardware
from agent.errors import InputRejected
from agent.fit.cost.answer import age_days
from agent.fit.cost.load import Load
from agent.fit.question import question_from

TODAY = date(2026, 11, 22)
MODEL = "google/gemma-4-12B-it-qat-w4a16-ct"


@pytest.fixture(scope="module")
def costs() -> CostAnswers:
    return CostAnswers.open(TODAY)


def ask(costs, *, accelerator=None, load=Load(), own=None, platform=None, **row):  # noqa: B008 - a frozen value
    question = question_from({"model": MODEL, "accelerator": accelerator or "any", **row})
    return costs.answer(question, load, accelerator=accelerator, own=own, platform=platform)


@pytest.mark.parametrize(
    ("as_of", "days"), [("2026-08-24", 90), ("2026-08-23", 91), ("2026-12-01", 0), ("", 0)], ids=str
)
def test_the_age_of_a_price(as_of, days):
    assert age_days(as_of, TODAY) == days


def test_one_table_goes_across_the_platforms(costs):
    """Every platform of the catalogue, the cheapest that meets the needs first and named."""
    found = ask(costs, need_context=8192).to_json()
    assert {row["platform"] for row in found["rows"]} >= {"cloud_run", "gke", "ec2", "container_apps", "tpu_vm"}
    assert found["where_to_run"] == found["rows"][0]["shape"]
    months = [row["usd_per_month"] for row in found["rows"] if row["meets_needs"]]
    assert months == sorted(months)
    assert {row["speed"] for row in found["rows"]} == {"computed"}
    assert any("--max-model-len is taken to be 8,192" in note for note in found["notes"])


def test_an_old_price_is_marked(costs):
    by_name = {row["shape"]: row for row in ask(costs, accelerator="nvidia-l4").to_json()["rows"]}
    assert (by_name["cloud-run-l4"]["price_age_days"], by_name["cloud-run-l4"]["price_is_old"]) == (113, True)
    assert by_name["ec2-g6.xlarge"]["price_is_old"] is False


def test_every_price_names_the_section_of_the_facts_where_it_stands(costs):
    """And a date: no figure without both."""
    assert all(shape.source.startswith("facts 7.") and shape.as_of for shape in costs.platforms.shapes)


def test_own_hardware_stands_in_the_table(costs):
    """3,000 USD over 3 years and 350 W at 0.30: 3,000 / 26,280 + 0.105 = 0.2192 USD an hour."""
    own = OwnHardware(price_usd=3000, years=3, watts=350, usd_per_kwh=0.3)
    row = next(
        row for row in ask(costs, accelerator="nvidia-l4", own=own).to_json()["rows"] if row["platform"] == "own"
    )
    assert row["usd_per_h"] == pytest.approx(0.2192, abs=1e-4)
    assert row["source"] == "as given: 3000 USD over 3 years, 350 W at 0.3 USD/kWh"


@pytest.mark.parametrize("wrong", [{"accelerator": "nvidia-h200", "count": 64}, {"platform": "moon"}], ids=str)
def test_nothing_to_price_is_refused(costs, wrong):
    with pytest.raises(InputRejected, match="nothing was priced"):
        ask(costs, **wrong)
