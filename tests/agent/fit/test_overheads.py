"""Calibrated terms cover the residuals that recorded start-ups leave."""

import pytest

from agent.fit.batch import effective
from agent.fit.bounds import GIB, independent_sum
from agent.fit.flags import parse_flags
from agent.fit.overheads import activation_peak, draft_allowance, graph_estimate, graph_memory, non_torch

GEMMA_26B = "RedHatAI/gemma-4-26B-A4B-it-NVFP4"


@pytest.fixture
def residual(catalogue):
    """Budget less weights less pool, GiB: (low, best, high)."""

    def asked(name, accelerator, flags, version):
        model, card, rules = catalogue.models.find(name), catalogue.accelerator(accelerator), catalogue.rules(version)
        parsed = parse_flags(flags)
        run = effective(model, card, parsed, rules)
        terms = [activation_peak(model, parsed, run), non_torch(card, parsed)]
        if rules.graph_estimate_subtracted:
            terms.append(graph_estimate(parsed, run))
        whole = independent_sum(terms)
        return whole.low / GIB, whole.best / GIB, whole.high / GIB

    return asked


@pytest.mark.parametrize(
    ("name", "accelerator", "flags", "version", "seen"),
    [
        (
            "google/gemma-4-12B-it-qat-w4a16-ct",
            "nvidia-a100-80gb",
            "--max-num-batched-tokens 4096 --max-num-seqs 8",
            "0.25.1",
            0.74,
        ),
        ("google/gemma-4-E4B-it", "nvidia-rtx-5090", "", "0.28", 2.04),
        ("google/gemma-4-26B-A4B-it", "nvidia-a100-80gb", "--enforce-eager", "0.19", 1.33),
        (GEMMA_26B, "nvidia-rtx-5090", "--max-num-batched-tokens 2048", "0.19", 1.41),
        (GEMMA_26B, "nvidia-rtx-5090", "--max-num-batched-tokens 8192", "0.19", 2.21),
        (GEMMA_26B, "nvidia-rtx-5090", "--max-num-batched-tokens 16384 --max-num-seqs 2", "0.19", 4.24),
        ("google/gemma-4-26B-A4B-it-qat-w4a16-ct", "nvidia-l4", "", "0.33", 2.01),
        (
            "google/gemma-4-31B-it",
            "nvidia-rtx-pro-6000",
            "--max-num-batched-tokens 8192 --max-num-seqs 20",
            "0.23",
            1.87,
        ),
        ("google/gemma-4-31B-it", "nvidia-b300", "--max-num-batched-tokens 8192 --max-num-seqs 1024", "0.26", 4.91),
        ("Qwen/Qwen2.5-14B-Instruct-AWQ", "nvidia-a10g", "", "0.19", 1.42),
    ],
)
def test_recorded_residuals_lie_within_the_bounds(residual, name, accelerator, flags, version, seen):
    low, best, high = residual(name, accelerator, flags, version)
    assert low <= seen <= high
    assert abs(best - seen) <= 0.6


def test_fewer_sequences_are_the_cheapest_lever(residual):
    many = residual("google/gemma-4-31B-it", "nvidia-b300", "--max-num-seqs 1024", "0.26")
    few = residual("google/gemma-4-31B-it", "nvidia-b300", "--max-num-seqs 16", "0.26")
    assert many[1] - few[1] > 1.5


def test_eager_mode_has_no_graphs(catalogue):
    model, card, rules = (
        catalogue.models.find("Qwen/Qwen3-8B"),
        catalogue.accelerator("nvidia-l4"),
        catalogue.rules("0.33"),
    )
    flags = parse_flags("--enforce-eager")
    run = effective(model, card, flags, rules)
    assert graph_memory(flags, run).high == graph_estimate(flags, run).high == 0


def test_ranks_add_communication_buffers(catalogue):
    card = catalogue.accelerator("nvidia-l4")
    assert non_torch(card, parse_flags("-tp 2")).best > non_torch(card, parse_flags("")).best


def test_only_a_draft_that_is_not_counted_gets_an_allowance():
    guessing = parse_flags("--speculative-config.model a/b")
    assert draft_allowance(guessing, assisted=False, counted=False).high > 0
    assert draft_allowance(guessing, assisted=False, counted=True).high == 0
    assert draft_allowance(parse_flags(""), assisted=False, counted=False).high == 0


def test_an_assistant_weighs_what_was_printed_and_caches_nothing(ask):
    """Recorded: 26B-A4B W4A16 prints 15.76 GiB alone and 16.55 with images and its assistant."""
    draft = """--speculative-config '{"method":"mtp","model":"google/gemma-4-26B-A4B-it-assistant","num_speculative_tokens":4}'"""
    flags = "--max-model-len 16384"
    alone, paired = (ask("gemma-4-26B-A4B-it-W4A16", "nvidia-l40s", f"{flags} {more}") for more in ("", draft))
    assert paired.weights_bytes.best / GIB == pytest.approx(16.55, rel=0.005)
    assert paired.kv_bytes_per_request == alone.kv_bytes_per_request
    assert paired.fits is True
