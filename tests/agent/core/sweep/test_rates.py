"""Runs of request rates: what is between their ends, and the highest rate that keeps to a target."""

import pytest

from agent.core.sweep.cell import Outcome
from agent.core.sweep.findings import find
from agent.core.sweep.target import read_target
from tests.agent.core.sweep import values
from tests.agent.core.sweep.rate_cells import rate_cells

SLO = read_target("latency_p99<1s")


def test_the_highest_rate_that_keeps_the_target_is_found() -> None:
    """2 and 4 requests/s take less than a second, 6 takes two."""
    (found,) = find(rate_cells(), {}, SLO).rates
    assert [(point.per_s, point.keeps) for point in found.points] == [(2.0, True), (4.0, True), (6.0, False)]
    assert found.highest == found.points[1]
    assert found.cells == tuple(f"c128-o32-r{n}of5" for n in range(1, 6))


@pytest.mark.parametrize(
    ("latencies_s", "sent", "highest"),
    [
        ((2.0, 2.0, 2.0), None, None),
        ((0.4, 2.0, 0.4), None, 2.0),  # what a higher rate keeps by chance is not promised
        ((0.4, 0.4, 0.4), (10, 5, 10), 2.0),  # ended as over-saturated: five requests show no lasting rate
        ((0.4, 0.4, 0.4), None, 6.0),
    ],
)
def test_only_a_rate_below_which_all_keep_is_promised(latencies_s, sent, highest) -> None:
    """And only one that was measured to its end."""
    (found,) = find(rate_cells(latencies_s, sent=sent), {}, SLO).rates
    assert (found.highest.per_s if found.highest else None) == highest


def test_without_a_target_nothing_is_judged() -> None:
    """The rates are there."""
    (found,) = find(rate_cells(), {}).rates
    assert ([point.keeps for point in found.points], found.highest) == ([None] * 3, None)


def test_steps_are_no_concurrencies() -> None:
    """Plateau, best setting and deviations are those of the cells of a concurrency; of steps alone there are none."""
    closed = (values.cell(1), values.cell(8))
    alone, both = find(closed, {}, SLO), find((*rate_cells(), *closed), {}, SLO)
    assert (both.contexts, both.best, both.deviations) == (alone.contexts, alone.best, alone.deviations)
    assert (alone.rates, len(both.rates)) == ((), 1)
    assert find(rate_cells(), {}, SLO).contexts == ()


def test_a_rate_that_was_not_sent_is_no_point() -> None:
    """It has no figures."""
    *rest, last = rate_cells()
    (found,) = find((*rest, last.with_(measured=None, rate=None, outcome=Outcome.DROPPED, why="x")), {}, SLO).rates
    assert [point.per_s for point in found.points] == [2.0, 4.0]
