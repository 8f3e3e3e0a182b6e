"""What one server's flags ask for."""

import pytest

from agent.fit.flags.flags import parse_flags


@pytest.mark.parametrize(
    ("flags", "pools"),
    [
        ("", False),
        ("--runner pooling", True),
        ("--runner generate", False),
        ("--task embed", True),
        ("--task auto", False),
        ("--convert classify", True),
        ("--convert none", False),
        ("--task embed --task generate", False),
    ],
)
def test_a_pooling_task_is_told_from_generation_by_the_last_flag(flags, pools):
    assert parse_flags(flags).pools is pools


def test_devices_count_every_rank_of_every_replica():
    flags = parse_flags("-tp 2 -pp 3 -dp 4")
    assert (flags.world, flags.devices) == (6, 24)
