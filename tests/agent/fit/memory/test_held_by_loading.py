"""Sleep mode and loaders that keep a copy."""

import pytest

GEMMA = "google/gemma-4-12B-it-qat-w4a16-ct"
NVFP4 = "--kv-cache-dtype fp8 --max-model-len 262144 --max-num-seqs 4 --max-num-batched-tokens 8192"


def test_sleep_mode_is_answered_where_loading_gives_nothing_back(ask):
    """Printed by 0.11.0 on an L40S: 33.45 GiB with sleep mode."""
    plain, asleep = (
        ask("meta-llama/Llama-3.2-3B-Instruct", "nvidia-l40s", flags, vllm="0.11.0")
        for flags in ("", "--enable-sleep-mode")
    )
    assert (plain.fits, asleep.fits) == (True, True)
    assert asleep.kv_cache_bytes.low < plain.kv_cache_bytes.low <= 33.45 * 2**30 <= asleep.kv_cache_bytes.high


@pytest.mark.parametrize(
    ("model", "most"),
    [
        pytest.param(GEMMA, None, id="a-head-that-is-built-before-it-is-tied"),
        pytest.param("RedHatAI/Qwen3-8B-NVFP4", None, id="weights-that-become-larger-when-repacked"),
        pytest.param("Qwen/Qwen3-8B-AWQ", True, id="weights-that-take-the-room-of-the-layer-before"),
    ],
)
def test_what_loading_gives_back_may_become_part_of_the_cache_in_sleep_mode(ask, model, most):
    full, half = (
        ask(
            model,
            "nvidia-l40s",
            f"--max-model-len 16384 --gpu-memory-utilization {share} --enable-sleep-mode",
            vllm="0.26.0",
        )
        for share in (0.9, 0.6)
    )
    assert (full.fits, half.fits) == (most, True)
    assert full.kv_cache_bytes.high - full.kv_cache_bytes.best > full.weights_bytes.best / 4


def test_the_pool_that_sleep_mode_gave_on_an_a10_lies_in_its_range(ask):
    """Gemma 4 12B was given 13.77 GiB on an A10 where 10.03 are left without sleep mode, and died (0.26.0)."""
    on_a10 = ask(GEMMA, "nvidia-a10", "--max-model-len 16384 --enable-sleep-mode", vllm="0.26.0")
    assert on_a10.fits is None
    assert on_a10.kv_cache_bytes.low < 10.03 * 2**30 < 13.77 * 2**30 < on_a10.kv_cache_bytes.high


@pytest.mark.parametrize(
    ("accelerator", "flags", "vllm"),
    [
        pytest.param("nvidia-l40s", "--quantization fp8", "0.26.0", id="quantised-while-loading"),
        pytest.param("amd-mi300x", "", "0.11.0", id="no-sleep-mode-on-rocm-yet"),
        pytest.param("amd-rx-9070-xt", "", "0.26.0", id="a-radeon"),
    ],
)
def test_sleep_mode_is_cannot_tell_where_it_was_not_seen(ask, accelerator, flags, vllm):
    report = ask("Qwen/Qwen3-1.7B", accelerator, f"--max-model-len 8192 --enable-sleep-mode {flags}", vllm=vllm)
    assert report.fits is None
    assert any("enable-sleep-mode" in told for told in report.assumptions)


@pytest.mark.parametrize(
    ("share", "flags", "fits"),
    [("0.4", "--load-format fastsafetensors", None), ("0.4", "", True), ("0.9", "--load-format fastsafetensors", True)],
)
def test_a_loader_may_keep_a_copy_where_host_and_device_share_their_memory(ask, share, flags, fits):
    """Recorded: no cache at 0.4 of a GB10 with that loader (0.28.0)."""
    asked = f"{NVFP4} --gpu-memory-utilization {share} {flags}"
    assert ask("nvidia/Qwen3.6-35B-A3B-NVFP4", "nvidia-gb10", asked, vllm="0.28.0").fits is fits
