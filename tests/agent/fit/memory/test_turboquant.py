"""KV caches of the TurboQuant types: pages, layers that stay in 16 bits, and the memory their kernels set aside."""

import pytest

from agent.fit.bounds import GIB

PACKED = "--kv-cache-dtype turboquant_4bit_nc"


def test_a_hybrids_layers_are_all_packed_as_printed(ask):
    """306,325 tokens in 5 GiB of an RTX 5090 (0.27.1, public GitHub file, index id 63196695001)."""
    flags = f"{PACKED} --max-model-len 262144 --kv-cache-memory-bytes {5 * GIB} --max-num-seqs 4"
    report = ask(
        "unsloth/Qwen3.8-27B-NVFP4", "nvidia-rtx-5090", f"{flags} --max-num-batched-tokens 1024", vllm="0.27.1"
    )
    assert (report.fits, report.kv_tokens.best) == (True, 306_325)


@pytest.mark.parametrize(
    ("asked", "heads_bytes"),
    [
        ("turboquant_k8v4", 128 + 64 + 4),
        ("turboquant_4bit_nc", 66 + 68),
        ("turboquant_k3v4_nc", 50 + 68),
        ("turboquant_3bit_nc", 50 + 52),
    ],
)
def test_the_first_and_last_two_layers_of_a_dense_model_stay_in_16_bits(ask, asked, heads_bytes):
    """Qwen3 4B in k8v4: 66,560 bytes a token."""
    flags = f"--max-model-len 8192 --gpu-memory-utilization 0.9 --kv-cache-dtype {asked}"
    report = ask("Qwen/Qwen3-4B", "nvidia-rtx-5090", flags, vllm="0.27.1")
    assert report.fits is True
    assert report.kv_bytes_per_request.best == 8192 * 8 * (4 * 2 * 128 * 2 + 32 * heads_bytes)


@pytest.mark.parametrize(("batch", "fits"), [(128, True), (1024, None)])
def test_a_layers_whole_cache_is_unpacked_beside_the_pool_where_prompts_go_on_in_large_batches(ask, batch, fits):
    """Keys and values of 262,144 tokens, 4 heads of 256 in 16 bits: 1 GiB that a pool of given size must leave."""
    flags = f"{PACKED} --max-model-len 262144 --kv-cache-memory-bytes {8 * GIB} --max-num-seqs 4 --language-model-only"
    report = ask(
        "unsloth/Qwen3.8-27B-NVFP4", "nvidia-rtx-5090", f"{flags} --max-num-batched-tokens {batch}", vllm="0.27.1"
    )
    assert report.fits is fits


@pytest.mark.parametrize(
    ("model", "flags", "vllm"),
    [
        pytest.param("google/gemma-3-12b-it", "", "0.27.1", id="windows"),
        pytest.param("deepseek-ai/DeepSeek-V2-Lite", "", "0.27.1", id="latent"),
        pytest.param("Qwen/Qwen3-8B", "--pipeline-parallel-size 2", "0.27.1", id="stages"),
    ],
)
def test_what_was_not_read_is_cannot_tell(ask, model, flags, vllm):
    report = ask(model, "nvidia-h200", f"--max-model-len 8192 {PACKED} {flags}", vllm=vllm)
    assert report.fits is None
    assert any("turboquant_4bit_nc" in told for told in report.assumptions)


@pytest.mark.parametrize("accelerator", ["tpu-v6e", "amd-mi300x", "cpu"])
def test_only_cuda_packs_such_a_cache(ask, accelerator):
    report = ask("Qwen/Qwen3-1.7B", accelerator, f"--max-model-len 8192 {PACKED}", vllm="0.27.1")
    assert report.fits is None
    assert any("turboquant_4bit_nc" in told for told in report.assumptions)
    assert not any("fp8" in told for told in report.assumptions)


def test_an_older_engine_does_not_take_the_type(ask):
    report = ask("Qwen/Qwen3-8B", "nvidia-h200", f"--max-model-len 8192 {PACKED}", vllm="0.19.0")
    assert (report.fits, report.reason) == (False, "unsupported")
