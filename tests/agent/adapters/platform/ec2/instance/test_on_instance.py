"""Which start of a unit carries what was written, across boots."""

import pytest

from agent.adapters.platform.ec2.instance.on_instance import began_after, boot_id


@pytest.mark.parametrize(
    ("boot", "began", "after"),
    [("this", 9, False), ("this", 10, True), ("earlier", 9, True), ("earlier", 0, False)],
    ids=["before it was read anew", "after it", "another boot", "not started in it"],
)
def test_a_start_in_a_later_boot_carries_what_was_written_before(boot, began, after):
    """Times are microseconds since the boot, so those of two boots are not compared."""
    entry = {"reloaded": 10, "boot": boot_id() if boot == "this" else boot}
    assert began_after(entry, began) is after
