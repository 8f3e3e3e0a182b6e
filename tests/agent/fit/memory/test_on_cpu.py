"""vLLM's CPU worker takes the KV space it is given."""

from agent.fit.bounds import GIB


def test_the_environment_wins_over_the_flag(ask):
    both = ask("Qwen/Qwen3-0.6B", "cpu", "VLLM_CPU_KVCACHE_SPACE=1 --max-model-len 4096 --kv-cache-memory-bytes 8G")
    assert both.kv_cache_bytes.best == GIB


def test_blocks_have_128_tokens(ask):
    assert ask("Qwen/Qwen3-0.6B", "cpu", "VLLM_CPU_KVCACHE_SPACE=1 --max-model-len 4096").kv_block_tokens == 128


def test_a_request_too_long_for_the_space_does_not_fit_and_is_told_its_limit(ask):
    """Recorded with vLLM 0.32: 1 GiB, 32 KiB a token, longest 32,640; here 112 KiB a token."""
    report = ask("Qwen/Qwen3-0.6B", "cpu", "VLLM_CPU_KVCACHE_SPACE=1 --max-model-len 40960")
    assert (report.fits, report.reason) == (False, "one_request")
    assert report.estimated_max_model_len % 128 == 0
    again = ask("Qwen/Qwen3-0.6B", "cpu", f"VLLM_CPU_KVCACHE_SPACE=1 --max-model-len {report.estimated_max_model_len}")
    assert again.fits is True
    assert (
        ask(
            "Qwen/Qwen3-0.6B", "cpu", f"VLLM_CPU_KVCACHE_SPACE=1 --max-model-len {report.estimated_max_model_len + 1}"
        ).fits
        is False
    )


def test_without_a_space_nothing_is_known(ask):
    report = ask("Qwen/Qwen3-0.6B", "cpu", "--max-model-len 4096")
    assert (report.fits, report.reason) == (None, "unknown")
    assert report.kv_tokens is None


def test_a_gemma_batch_under_a_video_item_is_refused_here_too(ask):
    report = ask(
        "google/gemma-4-12B-it", "cpu", "VLLM_CPU_KVCACHE_SPACE=4 --max-model-len 4096 --max-num-batched-tokens 2048"
    )
    assert report.reason == "unsupported"


def test_a_sliding_window_on_a_cpu_holds_one_batch_whatever_is_asked(ask):
    """Printed by vLLM 0.32 serving Gemma 3 270M: 132,332 tokens, 16.15 requests of 8,192 tokens."""
    flags = "VLLM_CPU_KVCACHE_SPACE=1 --max-model-len 8192 --max-num-seqs 8"
    for more in ("", " --async-scheduling"):
        report = ask("google/gemma-3-270m", "cpu", flags + more, vllm="0.32")
        assert report.kv_tokens.best == 132_332
        assert round(report.max_concurrency[1], 2) == 16.15
        assert report.kv_blocks_per_request == 64 + 5 * 21


def test_the_real_server_of_the_lab_is_met_before_and_after_its_mending(ask):
    """Printed by vLLM 0.32 in `make lab`: 32,768 tokens need 0.13 GiB of 0.06; at 8,192 the pool is 8,240 tokens."""
    flags = "--enforce-eager --kv-cache-memory-bytes 67108864 --max-num-seqs 8 --max-model-len"
    failed, mended = (ask("google/gemma-3-270m", "cpu", f"{flags} {n}", vllm="0.32") for n in (32768, 8192))
    assert (failed.fits, failed.reason) == (False, "one_request")
    assert round(failed.kv_bytes_per_request.best / GIB, 2) == 0.13
    assert mended.fits is True
    assert mended.kv_tokens.best == 8_240
