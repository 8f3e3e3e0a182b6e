"""Time never goes back behind what was stored."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.adapters.clock import ServerClock, StoredClock, SystemClock
from agent.errors import DependencyFailed
from agent.ports.clock import clock_note

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
        raise DependencyFailed("no", why="the disk is gone", hint="look")

    with pytest.raises(DependencyFailed):
        StoredClock(Standing(T0), unreadable).now()


def test_the_machines_time_is_aware_and_utc():
    assert SystemClock().now().utcoffset() == timedelta(0)


BACK = pytest.mark.parametrize("back_s", [45, 600, 3600])


class Running:
    """A machine whose clock can be set, and its counter of seconds, which cannot."""

    def __init__(self):
        self.time, self.ticks = T0, 100.0

    def now(self):
        return self.time

    def monotonic(self):
        return self.ticks

    def go(self, seconds):
        self.time += timedelta(seconds=seconds)
        self.ticks += seconds


@BACK
def test_time_goes_on_while_the_machines_clock_is_set_back(back_s):
    """R21: second by second, without a jump when the clock catches up."""
    machine = Running()
    clock = StoredClock(machine, lambda: T0, monotonic=machine.monotonic)
    assert clock.now() == T0
    machine.go(10)
    machine.time -= timedelta(seconds=back_s)
    for passed in (15, 20, 25):
        machine.go(5)
        assert clock.now() == T0 + timedelta(seconds=passed)
    assert clock.behind_s() == back_s
    machine.time += timedelta(seconds=back_s)
    assert clock.now() == T0 + timedelta(seconds=25)
    assert clock.behind_s() == 0


@BACK
def test_after_a_restart_it_goes_on_from_the_later_of_both(back_s):
    machine = Running()
    stored = T0 + timedelta(seconds=10)
    machine.time -= timedelta(seconds=back_s)
    clock = StoredClock(machine, lambda: stored, monotonic=machine.monotonic)
    assert clock.now() == stored
    machine.go(7)
    assert clock.now() == stored + timedelta(seconds=7)


@BACK
def test_the_servers_time_is_asked_for_once_in_a_while_and_the_machines_never(back_s):
    machine, asked = Running(), []

    def server():
        asked.append(machine.ticks)
        return T0 + timedelta(seconds=machine.ticks - 100)

    clock = ServerClock(server, machine, every_s=5, monotonic=machine.monotonic)
    assert clock.now() == T0
    machine.time -= timedelta(seconds=back_s)
    for passed in range(1, 12):
        machine.go(1)
        assert clock.now() == T0 + timedelta(seconds=passed)
    assert asked == [100.0, 105.0, 110.0]
    assert clock.behind_s() == back_s


def test_a_server_whose_time_goes_back_takes_nobody_with_it():
    machine, times = Running(), [T0, T0 - timedelta(seconds=60)]
    clock = ServerClock(lambda: times.pop(0), machine, every_s=0, monotonic=machine.monotonic)
    first = clock.now()
    assert clock.now() >= first


def test_people_are_told_of_a_clock_that_is_off_and_of_nothing_less():
    machine = Running()
    clock = StoredClock(machine, lambda: T0, monotonic=machine.monotonic)
    assert clock_note(clock) == ""
    assert clock_note(machine) == ""
    machine.time -= timedelta(seconds=45)
    assert clock_note(clock).startswith("The clock of this machine is 45 s behind the stored time")
    machine.time -= timedelta(seconds=3600)
    assert "61 min behind" in clock_note(clock)
