"""A sweep's findings: the plateau that is there, the limit that binds, the best setting, and how right the fit was."""

from pathlib import Path

import pytest

from agent.adapters.load.sweep_folder import read_cells, read_requests
from agent.core.sweep.cell import Bound, Cell, Outcome, PlannedCell, Predicted
from agent.core.sweep.findings import Verdict, figures, find, limits_of
from agent.core.sweep.plateau import PlateauReason
from agent.core.sweep.provenance import Limits
from agent.core.sweep.target import read_target
from tests.agent.core.sweep import values
from tests.agent.core.sweep.served import provenance, sweep_of

RECORDED = Path(__file__).parents[3] / "data" / "load" / "sweep-vllm"


def test_the_flag_that_binds_is_named_per_context():
    """Eight slots: at 128 tokens the flag, at 1,024 the cache of 4,096 tokens holds four."""
    short, rows = sweep_of(8)
    long, more = sweep_of(4, contexts=(1024,))
    found = find((*long, *short), rows | more)
    assert [context.context_tokens for context in found.contexts] == [128, 1024]
    first, second = found.contexts
    assert (first.plateau.reason, first.plateau.begins_at) == (PlateauReason.LIMIT, 8)
    assert [limit.bound for limit in first.plateau.limits] == [Bound.MAX_NUM_SEQS]
    assert (second.plateau.reason, second.plateau.begins_at) == (PlateauReason.LIMIT, 4)
    assert [limit.bound for limit in second.plateau.limits] == [Bound.KV_CACHE]
    assert not first.estimated


def test_the_slots_of_a_real_server_are_found_although_the_client_lagged():
    """Of vLLM 0.32 with --max-num-seqs 8, measured by guidellm on a machine so busy that the client saw ten at once at times."""
    cells = read_cells(RECORDED)
    (context,) = find(cells, {cell.id: read_requests(RECORDED, cell) for cell in cells}).contexts
    assert dict(context.running) == {2: 2, 8: 8, 16: 8, 24: 8}
    assert (context.plateau.reason, context.plateau.begins_at) == (PlateauReason.LIMIT, 8)
    assert [limit.bound for limit in context.plateau.limits] == [Bound.MAX_NUM_SEQS]


@pytest.mark.parametrize(("share", "known"), [(0.0, True), (0.04, True), (0.2, False), (1.0, False)])
def test_tokens_that_arrive_in_one_piece_say_nothing_about_waiting(share, known):
    """Neither a limit nor its absence is told from them; what a busy machine did to vLLM with a step of 3 ms."""
    cells, rows = sweep_of(8, tokens=64, rows={"bundled": share})
    (context,) = find(cells, rows).contexts
    assert (context.plateau.reason is PlateauReason.LIMIT) is known
    assert (context.plateau.reason is PlateauReason.NOT_TIMED) is not known
    assert bool(context.bundled) is not known
    assert context.plateau.saturated_at == 8
    assert (context.plateau.begins_at == 8) is known


def test_without_raw_rows_the_level_is_estimated_and_says_so():
    cells, _ = sweep_of(8)
    (context,) = find(cells, {}).contexts
    assert context.estimated
    assert (context.plateau.reason, context.plateau.begins_at) == (PlateauReason.LIMIT, 8)


def test_limits_count_every_instance_and_the_lowest_comes_first():
    made = provenance(instances=2, limits=Limits(max_num_seqs=8, kv_tokens=1000, platform_concurrency=10))
    cell = Cell(
        provenance=made, outcome=Outcome.DROPPED,
        planned=PlannedCell(context_tokens=200, output_tokens=20, concurrency=1, requests=1),
    )  # fmt: skip
    assert [(limit.bound, limit.requests) for limit in limits_of(cell)] == [
        (Bound.KV_CACHE, 10.0),
        (Bound.PLATFORM_CONCURRENCY, 10),
        (Bound.MAX_NUM_SEQS, 16),
    ]


@pytest.mark.parametrize(
    ("knee", "bound", "held"),
    [(12, Bound.KV_CACHE, 12), (14, Bound.MAX_NUM_SEQS, 14), (8, Bound.MAX_NUM_SEQS, 10), (None, Bound.UNKNOWN, 10)],
)
def test_what_the_cache_holds_is_what_was_computed_where_windows_slide(knee, bound, held):
    """1,000 tokens are 10 requests of 100; where layers slide the arithmetic finds room for more."""
    cell = Cell(
        provenance=provenance(limits=Limits(kv_tokens=1000)), outcome=Outcome.DROPPED,
        planned=PlannedCell(context_tokens=100, output_tokens=20, concurrency=1, requests=1),
        predicted=Predicted(knee=knee, bound=bound),
    )  # fmt: skip
    assert [(limit.bound, limit.requests) for limit in limits_of(cell)] == [(Bound.KV_CACHE, held)]


def test_the_best_setting_has_the_highest_throughput_of_those_that_meet_the_target():
    cells, rows = sweep_of(8)
    found = find(cells, rows, read_target("ttft_p99<100ms,itl_p99<50ms"))
    (best,) = found.best
    assert (best.verdict, best.concurrency, best.missed) == (Verdict.MET, 8, ())
    (best,) = find(cells, rows, read_target("ttft_p99<1ms")).best
    assert (best.verdict, best.concurrency) == (Verdict.NOT_MET, 1)
    assert [condition.figure for condition in best.missed] == ["ttft_p99"]


def test_a_context_of_which_nothing_was_measured_has_no_best_setting():
    cells, rows = sweep_of(8)
    dropped = Cell(
        provenance=cells[0].provenance, outcome=Outcome.DROPPED, why="4,096 tokens are beyond --max-model-len 1024",
        planned=PlannedCell(context_tokens=4096, output_tokens=32, concurrency=1, requests=1),
    )  # fmt: skip
    found = find((*cells, dropped), rows, read_target("ttft_p99<1s"))
    assert [best.verdict for best in found.best] == [Verdict.MET, Verdict.NOT_MEASURED]
    assert found.contexts[1].plateau.reason is PlateauReason.TOO_FEW


def test_what_was_predicted_stands_beside_what_was_measured():
    cells, rows = sweep_of(8, predicted=Predicted(knee=4, bound=Bound.KV_CACHE, output_tokens_per_s=(40.0, 50.0)))
    found = find(cells, rows).deviations
    knee = found[0]
    assert (knee.figure, knee.low, knee.measured, knee.off) == ("requests at once", 4, 8, 1.0)
    speed = next(one for one in found if one.concurrency == 1)
    assert speed.measured == pytest.approx(100, rel=0.02)
    assert speed.off == pytest.approx(1.0, abs=0.05)  # twice the high end
    inside = find(*sweep_of(8, predicted=Predicted(output_tokens_per_s=(80.0, 120.0)))).deviations
    assert {one.off for one in inside} == {0.0}


def test_failed_requests_stand_in_no_percentile_and_in_the_share_of_errors():
    cells, _ = sweep_of(8, grid=(8,), failing=50)
    found = figures(cells[0].measured)
    assert found["error_share"] == 0.25
    assert found["ttft_p99"] is not None
    assert figures(None) == {}


def test_goodput_counts_the_requests_that_each_keep_to_the_target():
    """Ten requests, each a tenth slower than the last: of ttft 0.10 to 0.19 s six stay below 0.155, over 4.65 s or so."""
    made = values.cell(4, requests=values.rows(10))
    failed = values.rows(1)[0].with_(ttft_s=None, error="HTTP 429")
    rows = {made.id: [*values.rows(10), failed]}
    found = find([made], rows, read_target("ttft_p99<155ms,itl_p50<1s,error_share<50%"))
    good = found.best[0].goodput
    assert (good.cell, good.concurrency, good.share) == (made.id, 4, pytest.approx(6 / 11))
    assert good.requests_per_s == pytest.approx(6 / made.measured.duration_s)
    assert find([made], rows, read_target("output_tokens_per_s>1")).best[0].goodput is None
    assert find([made], {}, read_target("ttft_p99<1s")).best[0].goodput is None
