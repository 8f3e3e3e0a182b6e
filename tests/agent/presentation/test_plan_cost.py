"""What a plan does to the price of a token."""

import pytest

from agent.core.plan.action import SetScaling
from agent.core.plan.plan import FitSummary
from agent.presentation.plan_cost import plan_costs, token_prices, token_prices_text
from tests.agent.presentation.test_slack_card import plan


def fit(speed):
    return FitSummary(fits=True, sentence="fits", report={"decode_tokens_per_s": speed})


def test_before_and_after_by_hand():
    """0.72 USD/h at 20 tokens/s, 72,000 an hour: 10 a million. 1.44 at 80, 288,000 an hour: 5."""
    made = plan(cost_before_usd_per_h=0.72, cost_after_usd_per_h=1.44, fit_before=fit(20.0), fit_after=fit(80.0))
    assert token_prices(made) == pytest.approx((10.0, 5.0))
    assert token_prices_text(made) == "10.00 -> 5.00 USD per million output tokens of one busy request, computed"
    assert plan_costs(made)["usd_per_million_output_tokens_after"] == pytest.approx(5.0)
    assert plan_costs(made)["cost_before_usd_per_h"] == 0.72


def test_what_stays_says_so():
    same = plan(cost_before_usd_per_h=0.72, cost_after_usd_per_h=0.72, fit_before=fit(20.0), fit_after=fit(20.0))
    assert token_prices_text(same) == "10.00 USD per million output tokens of one busy request, computed, as before"


def test_what_is_unknown_says_so_and_two_unknowns_say_nothing():
    half = plan(cost_before_usd_per_h=0.72, cost_after_usd_per_h=None, fit_before=fit(20.0), fit_after=fit(80.0))
    assert token_prices_text(half).startswith("10.00 -> unknown USD")
    assert token_prices_text(plan(fit_before=fit(None), fit_after=FitSummary())) == ""


def test_more_instances_have_the_price_of_all_so_no_price_of_one_request():
    scaled = plan(actions=(SetScaling(min_instances=0, max_instances=4),), fit_before=fit(20.0), fit_after=fit(20.0))
    assert token_prices(scaled) == (None, None)
