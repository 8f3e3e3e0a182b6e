"""What two measurements must share."""

import pytest

from agent.core.sweep.comparison import unlike
from agent.core.sweep.provenance import Driver, Limits
from tests.agent.core.sweep.values import NOW, provenance


@pytest.mark.parametrize(
    "change", [{"flags": "--max-num-seqs 9"}, {"driver": Driver.VLLM}, {"limits": Limits()}, {"ignore_eos": False}]
)
def test_unlike_things_are_unlike(change: dict) -> None:
    """Flags, driver, limits and lengths make another measurement."""
    assert unlike(provenance(**change), provenance())


def test_time_and_id_make_no_other_measurement() -> None:
    """The same again tomorrow may be compared."""
    tomorrow = provenance(sweep="sweep-2", started_at=NOW.replace(day=23), endpoint="http://127.0.0.1:9")
    assert not unlike(tomorrow, provenance())
