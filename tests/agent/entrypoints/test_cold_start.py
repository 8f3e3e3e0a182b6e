"""While a function is loaded nothing is collected; afterwards it is as ever, whatever happened."""

import gc

import pytest

from agent.entrypoints.cold_start import loading


@pytest.fixture(autouse=True)
def thawed():
    yield
    gc.unfreeze()
    gc.enable()


def test_the_collector_rests_and_then_goes_on_without_what_was_loaded():
    with loading():
        assert not gc.isenabled()
        loaded = [[number] for number in range(5000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= len(loaded)


def test_it_goes_on_when_loading_fails():
    with pytest.raises(ZeroDivisionError), loading():
        raise ZeroDivisionError
    assert gc.isenabled()
