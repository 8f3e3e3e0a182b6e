"""What a sweep found is said in whole sentences that are true of it."""

import pytest

from agent.core.sweep.cell import Bound, Predicted
from agent.core.sweep.findings import ContextFindings, Deviation, find
from agent.core.sweep.plateau import Limit, Plateau, PlateauReason
from agent.core.sweep.provenance import Limits
from agent.core.sweep.target import read_target
from agent.presentation.sweep.sentences import deviation_text, findings_text, plateau_text
from tests.agent.core.sweep import values
from tests.agent.core.sweep.served import GRID, provenance, sweep_of


def said(cells, rows, slo=None):
    return list(findings_text(find(cells, rows, read_target(slo) if slo else None), cells))


def test_the_plateau_is_named_with_the_flag_that_binds():
    (text,) = said(*sweep_of(8))
    assert text.startswith(
        "128 tokens (32 of them output): from 8 on requests wait: --max-num-seqs 8. Highest throughput"
    )
    assert text.endswith("95 % of it at 8.")


def test_the_cache_is_named_with_what_it_holds():
    (text,) = said(*sweep_of(4, contexts=(1024,)))
    assert "from 4 on requests wait: the KV cache, 4,096 tokens, holds 4 requests of 1,024 tokens." in text


def test_an_unknown_cause_is_said_to_be_unknown():
    (text,) = said(*sweep_of(5))
    assert "from about 5 on requests wait, and why is unknown: no known limit lies there (--max-num-seqs 8; " in text
    (text,) = said(*sweep_of(5, limits=Limits()))
    assert "why is unknown: no limit of this server is known." in text


@pytest.mark.parametrize("reason", list(PlateauReason))
def test_every_reason_has_a_sentence(reason):
    limits = (Limit(bound=Bound.PLATFORM_CONCURRENCY, requests=4),) if reason is PlateauReason.LIMIT else ()
    context = ContextFindings(
        context_tokens=128, output_tokens=32, cells=(), plateau=Plateau(reason=reason, begins_at=4, limits=limits)
    )
    text = plateau_text(context, provenance())
    assert text.startswith("128 tokens (32 of them output): ")
    assert text.endswith(".")
    assert ("concurrency of the platform, 4" in text) is (reason is PlateauReason.LIMIT)


def test_the_best_setting_and_the_nearest_miss_are_said():
    cells, rows = sweep_of(8, grid=GRID[2:])
    assert said(cells, rows, "ttft_p99<100ms")[0].startswith(
        "128 tokens (32 of them output): best for ttft_p99<100ms: 8 concurrent, 7"
    )
    nearest = said(cells, rows, "ttft_p99<10ms,error_share<=0%")[0]
    assert "no setting keeps ttft_p99<10ms,error_share<=0%; the nearest is 4 concurrent" in nearest
    assert nearest.endswith(": ttft_p99 is 21.9 ms.")


def test_p99_of_few_requests_is_said_to_be_the_slowest():
    few = sweep_of(8, rows={"requests": 70})
    assert said(*few, "ttft_p99<100ms")[0].endswith("Fewer than 100 requests: p99 is the slowest of them.")
    assert "Fewer" not in said(*few, "ttft_p90<100ms")[0]


def test_tokens_in_one_piece_are_said_to_be_the_paths():
    """No sentence about waiting is made of them."""
    plateau, path = said(*sweep_of(8, rows={"bundled": 0.5}))
    assert "how many requests ran at once is not known" in plateau
    assert "no request waits" not in plateau
    assert "at 1, 2, 4, 8, 16, 32, 64 concurrent the tokens of many answers arrived in one piece" in path


def test_failed_requests_are_said():
    assert said(*sweep_of(8, failing=3))[-1] == "3 of 1,400 requests failed; they stand in no percentile."


@pytest.mark.parametrize(
    ("measured", "text"),
    [(100, "as predicted"), (150, "+25.0 % beyond the high end"), (40, "-50.0 % beyond the low end")],
)
def test_a_deviation_is_counted_from_the_nearer_end(measured, text):
    off = {100: 0.0, 150: 0.25, 40: -0.5}[measured]
    one = Deviation(figure="x", context_tokens=1, output_tokens=1, low=80, high=120, measured=measured, off=off)
    assert deviation_text(one) == text
    found = find(*sweep_of(8, predicted=Predicted(output_tokens_per_s=(200, 300)))).deviations
    assert all(one.off == pytest.approx(-0.5, abs=0.01) for one in found)


def test_goodput_is_said_beside_the_best_setting():
    """Where the target bounds single requests and raw rows are there."""
    made = values.cell(4, requests=values.rows(10))
    found = find([made], {made.id: values.rows(10)}, read_target("ttft_p99<155ms"))
    said = list(findings_text(found, [made]))
    assert "most goodput: " in said[2]
    assert said[2].endswith("at 4 concurrent (60% of its requests).")
    assert "goodput" not in "".join(findings_text(find([made], {}, read_target("ttft_p99<1s")), [made]))
