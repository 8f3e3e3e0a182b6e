"""The plateau of a server whose limit is known is found where it is, and a limit that does not bind is not named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.sweep.cell import Bound, measured_cell
from agent.core.sweep.plateau import (
    Limit,
    LoadPoint,
    Plateau,
    PlateauReason,
    find_plateau,
    running_at_once,
    running_by_little,
)
from tests.agent.core.sweep.served import AT, GRID, rows_of


def seqs(requests):
    return Limit(bound=Bound.MAX_NUM_SEQS, requests=requests)


def cache(requests):
    return Limit(bound=Bound.KV_CACHE, requests=requests)


def platform(requests):
    return Limit(bound=Bound.PLATFORM_CONCURRENCY, requests=requests)


def served(concurrency, slots, **more):
    rows = rows_of(concurrency, slots, **more)
    return LoadPoint(
        concurrency=concurrency,
        running=running_at_once((row.started_s + row.ttft_s, row.started_s + row.latency_s) for row in rows),
        output_tokens_per_s=measured_cell(rows, began_at=AT).output_tokens_per_s,
    )


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 24])
def test_the_known_limit_of_a_server_is_found_and_named(slots):
    points = [served(c, slots) for c in GRID]
    found = find_plateau(points, [seqs(slots), cache(slots * 4.2), platform(80)])
    assert found.reason is PlateauReason.LIMIT
    assert found.begins_at == slots
    assert found.limits == (seqs(slots),)


@given(slots=st.integers(1, 40), seed=st.integers(0, 99), prefill=st.floats(0.001, 0.04))
def test_any_limit_inside_the_grid_is_found_whatever_the_chances(slots, seed, prefill):
    points = [served(c, slots, prefill_s=prefill, seed=seed, requests=max(100, 3 * c)) for c in GRID]
    found = find_plateau(points, [platform(slots), seqs(256)])
    assert (found.reason, found.begins_at, found.limits) == (PlateauReason.LIMIT, slots, (platform(slots),))


def test_a_predicted_limit_that_did_not_show_is_not_named():
    """The flags said 4, eight ran at once: the plateau is at 8, and nobody knows why."""
    found = find_plateau([served(c, 8) for c in GRID], [seqs(4), cache(40.0)])
    assert (found.reason, found.begins_at, found.limits) == (PlateauReason.UNKNOWN_LIMIT, 8, ())


def test_the_cache_is_named_where_requests_begin_to_wait_near_what_it_holds():
    found = find_plateau([served(c, 6) for c in GRID], [seqs(256), cache(5.3)])
    assert (found.reason, found.begins_at, found.limits) == (PlateauReason.LIMIT, 6, (cache(5.3),))


def test_two_limits_at_one_place_are_both_named_the_closest_first():
    found = find_plateau([served(c, 8) for c in GRID], [cache(8.4), seqs(8)])
    assert found.limits == (seqs(8), cache(8.4))


def test_a_grid_below_the_limit_reaches_no_plateau():
    found = find_plateau([served(c, 64) for c in GRID[:5]], [seqs(64)])
    assert found.reason is PlateauReason.NOT_REACHED
    assert found.begins_at is None


def test_throughput_that_stops_while_nobody_waits_is_the_accelerator_and_no_flag():
    points = [LoadPoint(concurrency=c, running=c, output_tokens_per_s=min(100 * c, 800)) for c in GRID]
    found = find_plateau(points, [seqs(256)])
    assert (found.reason, found.begins_at, found.limits) == (PlateauReason.ACCELERATOR, 8, ())


def test_a_level_that_keeps_growing_is_waiting_for_prefills_and_no_limit():
    points = [LoadPoint(concurrency=c, running=0.5 * c, output_tokens_per_s=50 * c) for c in GRID]
    assert find_plateau(points, [seqs(32)]).reason is PlateauReason.PREFILL


def test_throughput_that_falls_beyond_its_best_is_said():
    rates = {1: 10, 2: 20, 4: 40, 8: 40, 16: 30}
    points = [LoadPoint(concurrency=c, running=min(c, 4), output_tokens_per_s=rate) for c, rate in rates.items()]
    found = find_plateau(points, [seqs(4)])
    assert (found.saturated_at, found.falls_by) == (4, 0.25)


def test_without_times_of_requests_saturation_is_all_that_is_said():
    points = [LoadPoint(concurrency=c, running=None, output_tokens_per_s=min(c, 8)) for c in GRID]
    found = find_plateau(points, [seqs(8)])
    assert (found.reason, found.begins_at, found.limits, found.saturated_at) == (PlateauReason.NOT_TIMED, None, (), 8)


@pytest.mark.parametrize("points", [[], [LoadPoint(concurrency=1, running=1, output_tokens_per_s=5)]])
def test_one_cell_has_no_slope(points):
    assert find_plateau(points, [seqs(8)]) == Plateau(reason=PlateauReason.TOO_FEW)


def test_cells_without_output_are_no_division_by_zero():
    points = [LoadPoint(concurrency=c, running=0, output_tokens_per_s=0) for c in (1, 2)]
    assert find_plateau(points, []).falls_by == 0.0


def test_the_order_of_cells_changes_nothing():
    points = [served(c, 8) for c in GRID]
    assert find_plateau(points[::-1], [seqs(8)]) == find_plateau(points, [seqs(8)])


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=30))
def test_no_more_run_at_once_than_there_are(intervals):
    assert 0 <= running_at_once(intervals) <= len(intervals)


def test_a_blink_of_overlap_is_no_level():
    """The client notes the end of one request half a millisecond after the next began."""
    assert running_at_once([(at, at + 1.0005) for at in range(20)]) == 1


def test_littles_law_agrees_with_the_server_made_by_hand():
    """Eight slots, 32 open: 0.33 s of work after 0.99 s of waiting."""
    assert running_by_little(32, first_token_s=0.99, latency_s=1.32) == pytest.approx(8.0)
    assert running_by_little(4, first_token_s=0.0, latency_s=0.0) == 0.0
