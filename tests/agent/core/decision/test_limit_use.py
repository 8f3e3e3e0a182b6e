"""What is used of each limit, counted to the second, and when the next change may begin."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.core.decision.limit_use import limit_uses, longest_window, next_slot
from agent.core.decision.policy import Policy
from agent.core.decision.rule import ServiceLimit

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PROD = ServiceLimit(name="prod", services=("a*",), changes_per_hour=1, change_window_s=7200)
POLICY = Policy(change_window_s=900, changes_per_hour=2, limits=(PROD,))


def ago(minutes):
    return NOW - timedelta(minutes=minutes)


def uses(*changes, service="a", policy=POLICY):
    own = [at for at, of in changes if of == service]
    found = limit_uses(policy, service, of_service=own, of_all=changes, now=NOW)
    return {(use.name, bool(use.service)): (len(use.made), use.free_at) for use in found}, next_slot(found)


def test_nothing_made_leaves_every_limit_free():
    found, free_at = uses()
    assert found == dict.fromkeys([("", True), ("prod", True), ("", False), ("prod", False)], (0, None))
    assert free_at is None


def test_each_limit_counts_its_own_changes():
    found, free_at = uses((ago(10), "a"), (ago(20), "a2"), (ago(30), "b"))
    assert found[("", True)] == (1, ago(10) + timedelta(minutes=15))
    assert found[("prod", True)] == (1, ago(10) + timedelta(hours=2))
    assert found[("", False)] == (3, ago(20) + timedelta(hours=1))  # one more only when two of three are an hour old
    assert found[("prod", False)] == (2, ago(10) + timedelta(hours=1))
    assert free_at == ago(10) + timedelta(hours=2)


@pytest.mark.parametrize(("seconds", "made"), [(3600, 0), (3599, 1)])
def test_a_change_counts_for_an_hour_to_the_second(seconds, made):
    found, _ = uses((NOW - timedelta(seconds=seconds), "b"), service="b")
    assert found[("", False)][0] == made


def test_a_limit_of_none_an_hour_is_never_free():
    found, free_at = uses(service="b", policy=Policy(changes_per_hour=0))
    assert found[("", False)] == (0, NOW + timedelta(hours=1))
    assert free_at is not None


def test_as_far_back_is_read_as_the_longest_window_reaches():
    assert longest_window(POLICY, "a") == timedelta(hours=2)
    assert longest_window(POLICY, "b") == timedelta(hours=1)
