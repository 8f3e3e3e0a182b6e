"""Whether the two databases belong together, asked while others write to both."""

from dataclasses import replace

import pytest

from agent.core.database_pair import InstallationMark
from agent.stages.shared.database_pair import note_reached, pairing_fault


class Overtaken:
    """One of the two databases, before whose calls somebody else goes on."""

    def __init__(self, inner, before_call):
        self.inner = inner
        self.before_call = before_call

    def __getattr__(self, name):
        def called(*args, **more):
            self.before_call()
            return getattr(self.inner, name)(*args, **more)

        return called


def overtaken_at(world, number, act):
    """A world in which ``act`` happens before the call of that number to either database, and the calls so far."""
    calls = []

    def before_call():
        calls.append(0)
        if len(calls) == number:
            act()

    store, control = (Overtaken(inner, before_call) for inner in (world.store, world.control))
    return replace(world, store=store, control=control), calls


def written(world, at):
    """A row that is on record, without a word of it in either database."""
    return world.control.append(at=at, kind="k", incident="i", who="w", body="b")


CALLS = range(1, 9)  # more than either function makes


def test_a_row_that_is_written_between_the_two_reads_is_no_lost_database(bench):
    """Others tell first the incident database, then the control database; whoever reads meanwhile sees no gap."""
    world = bench.executor
    assert pairing_fault(world) == ""

    def goes_on():
        note_reached(world.store, world.control, written(world, bench.clock.now()))

    for number in CALLS:
        busy, calls = overtaken_at(world, number, goes_on)
        assert pairing_fault(busy) == ""
        assert len(calls) < CALLS[-1]
        assert world.store.mark().reached == world.control.mark().reached


@pytest.mark.parametrize("number", CALLS)
@pytest.mark.parametrize("row", [False, True])
def test_a_first_stamp_between_any_two_calls_is_no_lost_database(bench, number, row):
    """Of several who answer a new installation's first plan, the fastest stamps both, and may be on record at once."""
    world = bench.executor

    def stamps():
        assert pairing_fault(world) == ""
        if row:
            note_reached(world.store, world.control, written(world, bench.clock.now()))

    busy, calls = overtaken_at(world, number, stamps)
    assert pairing_fault(busy) == ""
    assert len(calls) < CALLS[-1]
    assert pairing_fault(world) == ""
    overtaken = row and number <= len(calls)
    assert (world.store.mark().reached, world.control.mark().reached) == (int(overtaken), int(overtaken))


@pytest.mark.parametrize("number", CALLS)
def test_a_row_of_an_installation_that_is_stamped_meanwhile_is_no_lost_database(bench, number):
    """Who rejects its first plan asks for no stamp, and is on record while who approves it stamps both."""
    world = bench.executor

    def stamps():
        assert pairing_fault(world) == ""

    busy, calls = overtaken_at(world, number, stamps)
    note_reached(busy.store, busy.control, written(world, bench.clock.now()))
    assert len(calls) < CALLS[-1]
    assert pairing_fault(world) == ""


@pytest.mark.parametrize("number", CALLS)
def test_a_row_is_not_noted_in_marks_that_were_made_anew_meanwhile(bench, number):
    """A person who pairs both anew, or deletes both marks in the cloud, does not wait for who is writing."""
    world = bench.executor
    assert pairing_fault(world) == ""

    def paired_anew():
        world.store.set_mark(InstallationMark(installation="anew", paired=True))
        world.control.set_mark(InstallationMark(installation="anew", paired=True))

    busy, _ = overtaken_at(world, number, paired_anew)
    note_reached(busy.store, busy.control, written(world, bench.clock.now()))
    assert pairing_fault(world) == ""


def test_another_installation_is_seen(bench):
    world = bench.executor
    assert pairing_fault(world) == ""
    world.store.set_mark(world.store.mark().with_(installation="another"))
    assert "one is of installation" in pairing_fault(world)
