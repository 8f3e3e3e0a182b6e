"""Two sweeps: a difference that is there is found, one that is not is not, and unlike sweeps are refused."""

import random
import statistics

import pytest

from agent.core.sweep.comparison import Verdict, compare, unlike
from agent.errors import PolicyRefused
from tests.agent.core.sweep.rate_cells import rate_cells
from tests.agent.core.sweep.served import provenance, sweep_of


def compared(one, other, **more):
    (before, rows), (after, more_rows) = one, other
    return compare(before, after, (rows, more_rows), chance=random.Random(0), **more)


def by_figure(found, concurrency):
    return {one.figure: one for one in found.differences if one.concurrency == concurrency}


def test_a_slower_server_is_found_slower_and_the_interval_holds_the_truth():
    """Each token takes a tenth longer; times to the first token are the same until requests wait."""
    found = by_figure(compared(sweep_of(8, grid=(4,)), sweep_of(8, grid=(4,), rows={"token_s": 0.011, "seed": 2})), 4)
    itl = found["itl_p50"]
    assert itl.verdict is Verdict.WORSE
    assert itl.low <= 0.1 <= itl.high
    assert found["output_tokens_per_s"].verdict is Verdict.WORSE
    assert found["ttft_p50"].verdict is Verdict.SAME
    assert found["error_share"].verdict is Verdict.SAME


@pytest.mark.slow
def test_two_sweeps_of_one_server_are_told_apart_no_more_often_than_by_chance():
    """One in twenty intervals may miss; 40 pairs of two figures."""
    missed = 0
    for seed in range(40):
        pair = (sweep_of(8, grid=(2,), rows={"seed": n, "requests": 60}) for n in (seed, seed + 1000))
        found = by_figure(compared(*pair), 2)
        missed += sum(found[name].verdict is not Verdict.SAME for name in ("ttft_p50", "itl_p50"))
    assert missed <= 11  # of 80; P(more) is below 0.2 %


def test_the_same_seed_gives_the_same_intervals():
    one, other = sweep_of(8, grid=(4, 8)), sweep_of(8, grid=(4, 8), rows={"seed": 5})
    assert compared(one, other) == compared(one, other)


def test_the_drawn_percentile_is_the_bootstraps():
    """Against drawing every request anew and sorting: the ends agree."""
    one, other = sweep_of(8, grid=(4,)), sweep_of(8, grid=(4,), rows={"seed": 9, "token_s": 0.012})
    found = by_figure(compared(one, other), 4)["itl_p50"]
    chance, times = random.Random(3), [[row.itl_s for row in rows["c128-o32-n4"]] for _, rows in (one, other)]
    plain = sorted(
        statistics.median_low(chance.choices(times[1], k=200)) / statistics.median_low(chance.choices(times[0], k=200))
        - 1
        for _ in range(2000)
    )
    assert found.low == pytest.approx(plain[50], abs=0.004)
    assert found.high == pytest.approx(plain[-51], abs=0.004)


def test_too_few_requests_give_no_verdict():
    few = sweep_of(8, grid=(4,), rows={"requests": 9})
    assert {one.verdict for one in compared(few, few).differences} == {Verdict.TOO_FEW}
    some = sweep_of(8, grid=(4,), rows={"requests": 99})
    found = by_figure(compared(some, some), 4)
    assert found["ttft_p99"].verdict is Verdict.TOO_FEW
    assert found["ttft_p50"].verdict is Verdict.SAME
    cells, _ = sweep_of(8, grid=(4,))
    assert {one.verdict for one in compared((cells, {}), (cells, {})).differences} == {Verdict.TOO_FEW}


def test_errors_of_the_second_alone_are_worse():
    found = by_figure(compared(sweep_of(8, grid=(4,)), sweep_of(8, grid=(4,), failing=20)), 4)
    assert found["error_share"].change == pytest.approx(0.1)
    assert found["error_share"].verdict is Verdict.WORSE


def test_unlike_sweeps_are_refused_and_anyway_names_what_differs():
    one, other = sweep_of(8, grid=(4,)), sweep_of(8, grid=(4,), flags="--max-num-seqs 16", accelerator="")
    with pytest.raises(PolicyRefused) as refused:
        compared(one, other)
    assert str(refused.value) == (
        "the sweeps were not compared: they are unlike in accelerator: 'nvidia-l4' and 'unknown'; flags: "
        "'--max-num-seqs 8' and '--max-num-seqs 16'. Hint: if that is the question, add --anyway"
    )
    found = compared(one, other, anyway=True)
    assert [(u.what, u.before, u.after) for u in found.unlike] == [
        ("accelerator", "nvidia-l4", ""),
        ("flags", "--max-num-seqs 8", "--max-num-seqs 16"),
    ]


def test_ids_times_and_addresses_make_nothing_unlike():
    assert unlike(provenance(), provenance(sweep="s-2", endpoint="http://127.0.0.1:9000", revision="r7")) == ()


def test_sweeps_without_a_common_cell_are_refused():
    with pytest.raises(PolicyRefused, match="no cell was measured in both"):
        compared(sweep_of(8, grid=(4,)), sweep_of(8, grid=(8,)))
    found = compared(sweep_of(8, grid=(4, 16)), sweep_of(8, grid=(4, 8)))
    assert (found.only_before, found.only_after) == (("c128-o32-n16",), ("c128-o32-n8",))


def test_request_rates_are_named_and_not_compared():
    """Each run sets its own rates, so no two of them load a server alike."""
    cells, rows = sweep_of(8, grid=(4, 8))
    steps = tuple(step.with_(provenance=cells[0].provenance) for step in rate_cells())
    found = compare((*cells, *steps), (*cells, *steps), (rows, rows), chance=random.Random(1))
    assert {one.concurrency for one in found.differences} == {4, 8}
    assert found.not_compared == tuple(step.id for step in steps)
    assert (found.only_before, found.only_after) == ((), ())
    with pytest.raises(PolicyRefused, match="no cell was measured in both"):
        compare(steps, steps, ({}, {}), chance=random.Random(1))
