"""Bills computed by hand."""

import pytest

from agent.fit.cost.bill import Throughput, bill, own_hardware_usd_per_h
from agent.fit.cost.load import Load

TEN_TO_FORTY = Throughput(output=(10.0, 40.0))
"""Middle 20 tokens/s: 72,000 an hour."""


def test_a_busy_hour_is_shared_by_its_tokens():
    """3.60 USD an hour: 20 tokens/s are 72,000 tokens, a million of them 50 USD; 40 are 25 USD, 10 are 100 USD."""
    found = bill(3.6, TEN_TO_FORTY, Load(busy=1.0), sleeps=True, wake_s=0)
    assert found.busy_output == pytest.approx((25.0, 50.0, 100.0))
    assert found.output == pytest.approx((25.0, 50.0, 100.0))
    assert found.usd_per_month == pytest.approx(3.6 * 730)


def test_idle_hours_cost_nothing_where_it_scales_to_zero_and_everything_where_it_does_not():
    """A quarter busy: the same tokens pay for one hour, or for four."""
    load = Load(busy=0.25)
    asleep = bill(3.6, TEN_TO_FORTY, load, sleeps=True, wake_s=0)
    awake = bill(3.6, TEN_TO_FORTY, load, sleeps=False, wake_s=0)
    assert (asleep.usd_per_month, awake.usd_per_month) == pytest.approx((657.0, 2628.0))
    assert asleep.output == pytest.approx((25.0, 50.0, 100.0))
    assert awake.output == pytest.approx((100.0, 200.0, 400.0))


def test_input_tokens_are_priced_only_where_they_were_measured():
    """100 input tokens/s are 360,000 an hour: 10 USD a million. The same hour makes the output."""
    measured = Throughput(output=(20.0, 20.0), input=100.0, measured=True, source="a sweep")
    assert bill(3.6, measured, Load(busy=1.0), sleeps=True, wake_s=0).busy_input == pytest.approx(10.0)
    assert bill(3.6, TEN_TO_FORTY, Load(busy=1.0), sleeps=True, wake_s=0).busy_input is None


@pytest.mark.parametrize(
    ("price", "throughput", "busy"), [(None, TEN_TO_FORTY, 0.3), (3.6, Throughput(output=None), 0.3)], ids=str
)
def test_what_is_unknown_stays_unknown(price, throughput, busy):
    found = bill(price, throughput, Load(busy=busy), sleeps=True, wake_s=0)
    assert (found.busy_output, found.output, found.busy_input) == (None, None, None)
    assert (found.usd_per_month is None) == (price is None)


def test_a_load_that_generates_nothing_has_a_bill_and_no_price_per_token():
    found = bill(3.6, TEN_TO_FORTY, Load(busy=0.0), sleeps=False, wake_s=0)
    assert found.usd_per_month == pytest.approx(2628.0)
    assert found.output is None


def test_own_hardware_is_depreciation_and_electricity():
    """2,628 USD over 3 years of 8,760 h: 0.10 an hour. 400 W half of the time, 100 W the other: 0.25 kW at 0.40."""
    told = {"price_usd": 2628.0, "years": 3.0, "watts": 400.0, "usd_per_kwh": 0.4, "busy": 0.5}
    assert own_hardware_usd_per_h(**told, idle_watts=100.0) == pytest.approx(0.10 + 0.10)
    assert own_hardware_usd_per_h(**told) == pytest.approx(0.10 + 0.16)
