"""vLLM's first engine: 0.6, 0.7, and what falls back to it up to 0.10.0."""

import pytest

from agent.fit.bounds import GIB

QWEN, LLAMA = "Qwen/Qwen2.5-1.5B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("model", "card", "flags", "vllm", "pool_gib"),
    [
        pytest.param(QWEN, "nvidia-l40s", "--gpu-memory-utilization 0.85 --max-model-len 4096", "0.7.3", 33.37, id="sampling-is-the-peak"),
        pytest.param(QWEN, "nvidia-t4", "--gpu-memory-utilization 0.5", "0.7.2", 2.36, id="a-whole-prompt-is-the-peak"),
        pytest.param(LLAMA, "nvidia-a100-80gb", "", "0.6.6", 54.93, id="a-long-context-is-chunked"),
        pytest.param("meta-llama/Meta-Llama-3-8B-Instruct", "nvidia-a100-80gb", "", "0.6.2", 54.28, id="cached-blocks-count"),
    ],
)  # fmt: skip
def test_printed_pools_of_the_first_engine_are_in_range_and_answered(ask, model, card, flags, vllm, pool_gib):
    report = ask(model, card, flags, vllm=vllm)
    assert report.fits is True
    assert report.kv_cache_bytes.low <= pool_gib * GIB <= report.kv_cache_bytes.high


@pytest.mark.parametrize(
    ("model", "flags", "vllm", "batch"),
    [
        pytest.param(LLAMA, "", "0.6.3", 512, id="chunks-of-512-up-to-0.6.4"),
        pytest.param(LLAMA, "", "0.7.3", 2048, id="chunks-of-2048-since"),
        pytest.param(LLAMA, "--max-model-len 8192", "0.7.3", 8192, id="a-whole-prompt-where-short"),
        pytest.param(LLAMA, "--max-model-len 512", "0.7.3", 2048, id="no-fewer-than-2048"),
        pytest.param("Qwen/Qwen2-VL-7B-Instruct", "--max-model-len 4096", "0.7.3", 5120, id="images-need-5120"),
    ],
)
def test_the_default_batch_is_a_prompt_or_a_chunk(ask, model, flags, vllm, batch):
    assert ask(model, "nvidia-a100-80gb", flags, vllm=vllm).max_num_batched_tokens == batch


def test_a_batch_shorter_than_a_whole_prompt_is_refused(ask):
    report = ask(LLAMA, "nvidia-a100-80gb", "--max-model-len 8192 --max-num-batched-tokens 4096", vllm="0.7.3")
    assert (report.fits, report.reason.value) == (False, "unsupported")


@pytest.mark.parametrize(
    ("card", "flags", "vllm", "is_v0"),
    [
        pytest.param("nvidia-t4", "", "0.8.5", True, id="turing-falls-back"),
        pytest.param("nvidia-t4", "", "0.10.0", True, id="up-to-0.10.0"),
        pytest.param("nvidia-t4", "", "0.10.2", False, id="not-later"),
        pytest.param("nvidia-l4", "--kv-cache-dtype fp8", "0.9.2", True, id="byte-caches-fall-back"),
        pytest.param("nvidia-h100-80gb", "--kv-cache-dtype fp8", "0.9.2", False, id="hopper-reads-bytes"),
        pytest.param("nvidia-b200", "--kv-cache-dtype fp8", "0.10.0", False, id="blackwell-reads-bytes-from-0.10"),
        pytest.param("nvidia-l4", "", "0.8.5", False, id="all-else-does-not"),
    ],
)
def test_what_falls_back_is_told_and_answered(ask, card, flags, vllm, is_v0):
    report = ask(QWEN, card, f"--max-model-len 4096 {flags}", vllm=vllm)
    assert any("by its V0 engine" in each for each in report.assumptions) is is_v0
    if is_v0:
        assert report.fits is True


@pytest.mark.parametrize(
    ("model", "flags", "told"),
    [
        pytest.param("google/gemma-2-9b-it", "", "window beside layers without", id="interleaved-windows"),
        pytest.param("deepseek-ai/DeepSeek-V2-Lite-Chat", "", "latent attention", id="latent"),
        pytest.param("Qwen/Qwen2-VL-7B-Instruct", "", "images or sound", id="towers"),
        pytest.param(LLAMA, "--pipeline-parallel-size 2", "pipeline stages", id="stages"),
    ],
)
def test_what_was_not_read_of_the_first_engine_is_cannot_tell(ask, model, flags, told):
    report = ask(model, "nvidia-h200", f"--max-model-len 4096 {flags}", vllm="0.7.3")
    assert report.fits is None
    assert any(told in each for each in report.assumptions)


@pytest.mark.parametrize(
    ("card", "count", "flags", "vllm", "fits"),
    [
        pytest.param("nvidia-rtx-4090", 2, "-tp 2 --gpu-memory-utilization 0.98", "0.7.2", False, id="held-81536"),
        pytest.param("nvidia-rtx-4090", 2, "-tp 2 --gpu-memory-utilization 0.9 --max-model-len 32768", "0.6.6", True, id="less-fits"),
        pytest.param("nvidia-l4", 2, "-tp 2 --max-model-len 65536", "0.6.0", False, id="smaller-cards"),
    ],
)  # fmt: skip
def test_one_request_must_find_room_in_all_blocks(ask, card, count, flags, vllm, fits):
    """Recorded: 131,072 tokens of a 14B model did not fit two 4090, which held 81,536 (0.7.2)."""
    assert ask("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", card, flags, vllm=vllm, count=count).fits is fits
