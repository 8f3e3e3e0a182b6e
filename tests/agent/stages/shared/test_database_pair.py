"""Whether the two databases belong together, asked while others write to both."""

from dataclasses import replace

import pytest

from agent.stages.shared.database_pair import note_reached, pairing_fault


def test_a_row_that_is_written_between_the_two_reads_is_no_lost_database(bench):
    """Others tell first the incident database, then the control database; whoever reads meanwhile sees no gap."""
    world = bench.executor
    assert pairing_fault(world) == ""

    class Busy:
        """A store beside which another decider goes on between any two reads."""

        def __init__(self, store):
            self.store = store

        def __getattr__(self, name):
            return getattr(self.store, name)

        def mark(self):
            read = self.store.mark()
            row = world.control.append(at=bench.clock.now(), kind="k", incident="i", who="w", body="b")
            note_reached(world.store, world.control, row.number)
            return read

    busy = replace(world, store=Busy(world.store), control=world.control)
    assert pairing_fault(busy) == ""
    busy = replace(world, store=world.store, control=Busy(world.control))
    assert pairing_fault(busy) == ""


@pytest.mark.parametrize("row", [0, 1])
def test_a_first_stamp_between_the_two_reads_is_no_lost_database(bench, row):
    """Of several who answer a new installation's first plan, the fastest stamps both, and may be on record at once."""
    world = bench.executor

    class Stamped:
        """A control database whose first reader is overtaken."""

        def __init__(self):
            self.asked = 0

        def __getattr__(self, name):
            return getattr(world.control, name)

        def mark(self):
            self.asked += 1
            if self.asked == 2:
                note_reached(world.store, world.control, row)
            read = world.control.mark()
            if self.asked == 1:
                assert pairing_fault(world) == ""
            return read

    assert world.control.mark() is None
    assert pairing_fault(replace(world, control=Stamped())) == ""
    world.store.set_mark(world.store.mark().with_(installation="another"))
    assert "one is of installation" in pairing_fault(world)
