"""The plan of a sweep: what cannot run, where requests wait, how long and how much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.sweep.cell import Bound
from agent.core.sweep.planning import Known, SweepAsked, knee_of, plan_sweep
from agent.core.sweep.provenance import Limits

ASKED = SweepAsked(contexts=(1024, 8192), concurrencies=(1, 4, 8, 16), output_tokens=128)
KNOWN = Known(
    limits=Limits(max_num_seqs=8, max_model_len=8192, platform_concurrency=80),
    full_requests={1024: 40.0, 8192: 5.0},
    tokens_per_s=(16.0, 25.0),
    usd_per_h=3.6,
)


@pytest.mark.parametrize(
    ("limits", "held", "knee"),
    [
        (Limits(max_num_seqs=8, platform_concurrency=80), 40.0, (8, Bound.MAX_NUM_SEQS)),
        (Limits(max_num_seqs=256, platform_concurrency=80), 5.9, (5, Bound.KV_CACHE)),
        (Limits(max_num_seqs=256, platform_concurrency=4), 40.0, (4, Bound.PLATFORM_CONCURRENCY)),
        (Limits(), None, (None, Bound.UNKNOWN)),
        (Limits(), 0.5, (0, Bound.KV_CACHE)),
    ],
)
def test_the_least_of_three_caps_sets_the_knee(limits: Limits, held: float | None, knee: tuple) -> None:
    """What is unknown caps nothing."""
    assert knee_of(1024, Known(limits=limits, full_requests={1024: held})) == knee


def test_cells_beyond_the_cache_are_dropped_but_one() -> None:
    """5 requests of 8,192 tokens fit: 8 at once shows the plateau, 16 shows nothing more; 1,024 is never beyond."""
    plan = plan_sweep(ASKED, KNOWN)
    assert [(c.planned.id, bool(c.cannot_run)) for c in plan.cells] == [
        ("c1024-o128-n1", False),
        ("c1024-o128-n4", False),
        ("c1024-o128-n8", False),
        ("c1024-o128-n16", False),
        ("c8192-o128-n1", False),
        ("c8192-o128-n4", False),
        ("c8192-o128-n8", False),
        ("c8192-o128-n16", True),
    ]
    assert plan.cells[-1].cannot_run == "the KV cache holds 5 of 16 requests of 8,192 tokens"
    assert [c.predicted.knee for c in plan.cells] == [8, 8, 8, 8, 5, 5, 5, 5]


def test_contexts_that_no_request_may_have_are_dropped() -> None:
    """Longer than the server takes, or than its cache."""
    known = KNOWN.with_(limits=Limits(max_model_len=4096), full_requests={1024: 0.9})
    says = {c.planned.context_tokens: c.cannot_run for c in plan_sweep(ASKED, known).cells}
    assert says == {
        1024: "the KV cache does not hold one request of 1,024 tokens",
        8192: "requests of 8,192 tokens: --max-model-len is 4,096",
    }


def test_time_and_money_are_computed() -> None:
    """By hand: 16 + 1 requests one by one, 128 tokens at 20 tokens/s, and 12 s for the driver; 3.60 USD an hour."""
    first = plan_sweep(ASKED, KNOWN).cells[0]
    assert (first.planned.requests, first.planned.warmup_requests) == (16, 1)
    assert first.predicted.duration_s == pytest.approx(12 + 17 * 6.4)
    assert first.predicted.cost_usd == pytest.approx((12 + 17 * 6.4) / 1000)
    sixteen = plan_sweep(ASKED, KNOWN).cells[3]  # 64 + 16 requests, 8 at once
    assert sixteen.predicted.duration_s == pytest.approx(12 + 10 * 6.4)


def test_what_is_unknown_stays_unknown() -> None:
    """No speed: no time, no money; nothing is dropped for want of knowledge."""
    plan = plan_sweep(ASKED, Known())
    assert (plan.duration_s, plan.cost_usd, len(plan.runnable)) == (None, None, 8)
    priceless = plan_sweep(ASKED, KNOWN.with_(usd_per_h=None))
    assert priceless.cost_usd is None
    assert priceless.duration_s > 0


@given(
    seqs=st.none() | st.integers(1, 64),
    held=st.none() | st.floats(0, 64),
    users=st.lists(st.integers(1, 64), min_size=1, max_size=5),
)
def test_every_cell_below_the_knee_runs(seqs: int | None, held: float | None, users: list[int]) -> None:
    """Whatever is known: what the arithmetic says runs at once is sent, and each cell is in the plan once."""
    asked = SweepAsked(contexts=(1024,), concurrencies=tuple(users), output_tokens=8)
    known = Known(limits=Limits(max_num_seqs=seqs), full_requests={1024: held})
    cells = plan_sweep(asked, known).cells
    assert [c.planned.concurrency for c in cells] == sorted(set(users))
    knee, _ = knee_of(1024, known)
    assert all(not c.cannot_run for c in cells if knee is not None and c.planned.concurrency <= knee)


def test_a_run_of_request_rates_is_planned_beside_the_concurrencies() -> None:
    """Of three rates five steps for each context: no warm-up, as many requests as the highest concurrency has."""
    plan = plan_sweep(ASKED.with_(rates=3), KNOWN)
    steps = [cell for cell in plan.cells if cell.planned.steps]
    assert [cell.planned.id for cell in steps] == [f"c{c}-o128-r{n}of5" for c in (1024, 8192) for n in range(1, 6)]
    assert {(cell.planned.requests, cell.planned.warmup_requests) for cell in steps} == {(64, 0)}
    took = [round(cell.predicted.duration_s) for cell in steps[:5]]
    # 20 tokens/s, 8 at once: 64 x 6.4 s; 8 waves; 64 / (1 + k/3 x 7) x 6.4 s; 12 s for the driver, 5 s for each further step
    assert took == [422, 56, 134, 84, 63]
    assert plan_sweep(ASKED.with_(rates=3), KNOWN.model_copy(update={"tokens_per_s": None})).duration_s is None
    assert all(not cell.planned.steps for cell in plan_sweep(ASKED, KNOWN).cells)


def test_a_run_of_request_rates_beyond_the_longest_context_is_not_sent() -> None:
    """Every step with the reason."""
    short = Known(limits=Limits(max_model_len=1024))
    dropped = [c for c in plan_sweep(ASKED.with_(rates=2), short).cells if c.cannot_run and c.planned.steps]
    assert [cell.planned.id for cell in dropped] == [f"c8192-o128-r{n}of4" for n in range(1, 5)]
