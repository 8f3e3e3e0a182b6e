"""What is billed of an hour: by scale to zero, minimum instances and wake-ups."""

import pytest

from agent.errors import InputRejected
from agent.fit.cost.load import Load


@pytest.mark.parametrize(
    ("load", "sleeps", "share"),
    [
        pytest.param(Load(busy=0.3), True, 0.3, id="scales to zero"),
        pytest.param(Load(busy=0.3), False, 1.0, id="runs whether busy or not"),
        pytest.param(Load(busy=0.3, min_instances=1), True, 1.0, id="one instance is kept"),
        pytest.param(Load(busy=0.3, min_instances=2), False, 2.0, id="two instances are kept"),
        # 6 x (100 s of start + 900 s idle) = 6,000 s of 86,400
        pytest.param(Load(busy=0.3, wakes_per_day=6), True, 0.3 + 6000 / 86400, id="woken six times a day"),
        pytest.param(Load(busy=0.9, wakes_per_day=48), True, 1.0, id="never more than it runs at all"),
        pytest.param(Load(busy=0.0), True, 0.0, id="asleep for good"),
    ],
)
def test_what_is_billed_of_an_hour(load, sleeps, share):
    assert load.billed_share(sleeps=sleeps, wake_s=1000) == pytest.approx(share)


@pytest.mark.parametrize(
    "wrong",
    [
        {"busy": 1.1},
        {"busy": -0.1},
        {"busy": float("nan")},
        {"requests": 0},
        {"min_instances": -1},
        {"wakes_per_day": -1},
    ],
    ids=str,
)
def test_what_is_no_load_is_refused(wrong):
    with pytest.raises(InputRejected, match=next(iter(wrong))):
        Load(**wrong)
