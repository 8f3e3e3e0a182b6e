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
    ("model", "flags"),
    [
        pytest.param(GEMMA, "--max-model-len 16384", id="a-head-that-is-built-before-it-is-tied"),
        pytest.param("Qwen/Qwen3-8B-AWQ", "--max-model-len 16384", id="weights-that-are-repacked"),
        pytest.param("Qwen/Qwen3-8B", "--max-model-len 8192 --quantization fp8", id="quantised-while-loading"),
    ],
)
def test_sleep_mode_is_cannot_tell_where_loading_gives_memory_back(ask, model, flags):
    """Gemma 4 12B was given 13.77 GiB on an A10 where 10.03 are left without sleep mode, and died (0.26.0)."""
    report = ask(model, "nvidia-l40s", f"{flags} --enable-sleep-mode", vllm="0.26.0")
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
