"""A breaker opens after failures in a row, and lets one call through for each rest."""

from agent.adapters.model.breaker import OPENS_AFTER, RESTS_S, Breaker


def test_it_opens_after_failures_in_a_row_only(ticks):
    """A good call in between starts the count anew."""
    breaker = Breaker(ticks)
    for _ in range(OPENS_AFTER - 1):
        breaker.heard(good=False)
    breaker.heard(good=True)
    for _ in range(OPENS_AFTER - 1):
        breaker.heard(good=False)
    assert breaker.admits()
    breaker.heard(good=False)
    assert not breaker.admits()
    assert OPENS_AFTER <= 5


def test_one_probe_goes_through_for_each_rest(ticks):
    """Half open: one call; a second one at the same moment waits, even if the first never reports."""
    breaker = Breaker(ticks)
    for _ in range(OPENS_AFTER):
        breaker.heard(good=False)
    ticks.now += RESTS_S
    assert [breaker.admits() for _ in range(4)] == [True, False, False, False]
    ticks.now += RESTS_S
    assert breaker.admits()
    breaker.heard(good=False)
    assert not breaker.admits()
    ticks.now += RESTS_S
    assert breaker.admits()
    breaker.heard(good=True)
    assert [breaker.admits() for _ in range(4)] == [True] * 4
    assert breaker.opened == 1
