"""Time never goes back behind what was stored."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.clock import StoredClock, SystemClock
from agent.errors import DependencyFailed

T0 = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


class Standing:
    def __init__(self, time):
        self.time = time

    def now(self):
        return self.time


@pytest.mark.parametrize(("stored_s", "now_s"), [(None, 0), (-600, 0), (600, 600)], ids=["empty", "earlier", "later"])
def test_it_is_the_later_of_the_machine_and_what_was_stored(stored_s, now_s):
    stored = None if stored_s is None else T0 + timedelta(seconds=stored_s)
    assert StoredClock(Standing(T0), lambda: stored).now() == T0 + timedelta(seconds=now_s)


def test_an_approval_stays_expired_when_the_machine_steps_back():
    machine = Standing(T0)
    highest = T0
    clock = StoredClock(machine, lambda: highest)
    expires_at = T0 + timedelta(seconds=60)
    machine.time += timedelta(seconds=61)
    highest = clock.now()
    machine.time -= timedelta(seconds=600)
    assert clock.now() >= expires_at


def test_without_the_store_no_time_is_given_out():
    def unreadable():
        raise DependencyFailed("no", why="the disk is gone", mend="look")

    with pytest.raises(DependencyFailed):
        StoredClock(Standing(T0), unreadable).now()


def test_the_machines_time_is_aware_and_utc():
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_the_highest_stored_time_is_read_once_in_a_while() -> None:
    """Between two readings the last answer stands: it is a lower bound, because stored times only grow."""
    from agent.adapters.clock import now_and_then

    asked: list[int] = []

    def latest() -> None:
        asked.append(1)

    often = now_and_then(latest, every_s=3600)
    assert [often() for _ in range(5)] == [None] * 5
    assert len(asked) == 1
    always = now_and_then(latest, every_s=0)
    [always() for _ in range(3)]
    assert len(asked) == 4
