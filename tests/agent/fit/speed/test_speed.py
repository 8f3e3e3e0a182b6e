"""Decode rates against those that were seen."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.flags.flags import Flags, parse_flags
from agent.fit.speed.speed import decode_speed, first_token_s
from benchmarks.decode_speed import rows as decode_rates
from benchmarks.decode_speed import summary

DATA = load_fit_catalogue()
RECORDED = decode_rates()
GUIDE = " ".join((Path(__file__).parents[4] / "docs" / "fit.md").read_text().split())
QAT_31B = "google/gemma-4-31B-it-qat-w4a16-ct"


def speed(model, accelerator, flags="", *, vllm="0.23", sequences=1):
    return decode_speed(
        DATA.models.find(model),
        DATA.accelerator(accelerator),
        parse_flags(flags),
        DATA.rules(vllm),
        sequences=sequences,
    )


@pytest.mark.parametrize(
    ("flags", "sequences", "seen"),
    [
        pytest.param("--cpu-offload-gb 14", 1, 0.8, id="14 GiB, one request (seed 000)"),
        pytest.param("--cpu-offload-gb 14", 2, 1.6, id="14 GiB, two requests (seed 000)"),
        pytest.param("--cpu-offload-gb 5", 1, 2.0, id="5 GiB (seed 000)"),
    ],
)
def test_an_offloaded_31b_on_an_l4_is_as_slow_as_it_was_seen_to_be(flags, sequences, seen):
    found = speed(QAT_31B, "nvidia-l4", flags, sequences=sequences)
    assert found.low <= seen <= found.high
    assert found.best == pytest.approx(seen, rel=0.12)
    assert found.high / found.low < 1.4


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row.name)
def test_a_rate_that_was_seen_lies_between_the_bounds(row):
    assert row.low <= row.seen <= row.high


def test_the_guide_states_the_known_error():
    """docs/fit.md: number, median and worst of all recorded rates, and of those that nothing was tuned to."""
    new = [row for row in RECORDED if not row.tuned]
    assert len(RECORDED) >= 9
    assert len(new) >= 3
    for rows in (RECORDED, new):
        assert summary(rows) in GUIDE


def test_of_a_mixture_one_token_reads_the_visited_experts_only_and_a_batch_more():
    one = speed("google/gemma-4-26B-A4B-it", "nvidia-h200")
    many = speed("google/gemma-4-26B-A4B-it", "nvidia-h200", sequences=32)
    assert one.active_bytes == pytest.approx(2 * (1_645_445_120 + 22_837_985_280 / 16 + 738_197_504), rel=0.02)
    assert one.active_bytes * 5 < many.active_bytes < 2 * 25.3e9
    assert many.high > one.high


def test_the_vision_tower_that_is_offloaded_first_costs_no_speed():
    """From 0.33 the tower goes first: 1 GiB of offload moves what decoding does not read."""
    assert speed(QAT_31B, "nvidia-l4", "--cpu-offload-gb 1", vllm="0.33").offloaded_bytes == 0
    assert speed(QAT_31B, "nvidia-l4", "--cpu-offload-gb 1", vllm="0.23").offloaded_bytes > 2**30


def test_what_is_not_known_is_not_guessed():
    model, card = DATA.models.find(QAT_31B), DATA.accelerator("nvidia-l4")
    rules = DATA.rules(None)
    assert decode_speed(model, replace(card, bandwidth_bytes_per_s=None), Flags(), rules) is None
    assert decode_speed(model, replace(card, pcie_bytes_per_s=None), Flags(cpu_offload_gb=5), rules) is None
    assert decode_speed(model, replace(card, pcie_bytes_per_s=None), Flags(), rules) is not None
    assert decode_speed(replace(model, unmodelled="odd"), card, Flags(), rules) is None


@given(less=st.floats(0, 18), more=st.floats(0, 18), sequences=st.integers(1, 16))
def test_more_offload_is_never_faster_and_bounds_stay_in_order(less, more, sequences):
    less, more = sorted((less, more))
    model, card, rules = DATA.models.find(QAT_31B), DATA.accelerator("nvidia-l4"), DATA.rules("0.23")
    fast = decode_speed(model, card, Flags(cpu_offload_gb=less), rules, sequences=sequences)
    slow = decode_speed(model, card, Flags(cpu_offload_gb=more), rules, sequences=sequences)
    assert 0 < slow.low <= slow.best <= slow.high
    assert (slow.low, slow.high) <= (fast.low, fast.high)
    assert slow.active_bytes == fast.active_bytes


def test_a_first_token_costs_one_step_over_the_whole_prompt():
    """26B QAT on an L4 was seen at 0.124 s with the request's way; a mixture reads most experts for a prompt."""
    found = first_token_s(
        DATA.models.find("google/gemma-4-26B-A4B-it-qat-w4a16-ct"),
        DATA.accelerator("nvidia-l4"),
        parse_flags(""),
        DATA.rules("0.23"),
    )
    one = speed("google/gemma-4-26B-A4B-it-qat-w4a16-ct", "nvidia-l4")
    assert 0.03 < found[0] < found[1] < 0.124
    assert found[0] > 2 / one.high
