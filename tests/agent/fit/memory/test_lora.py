"""LoRA adapters beside dense text models."""

import pytest

from agent.fit.bounds import GIB

T4 = "--dtype half --max-model-len 8192 -tp 2 --gpu-memory-utilization 0.85 --enforce-eager --max-num-batched-tokens 8192"


def test_buffers_of_adapters_are_counted_with_the_weights(ask):
    """Printed by 0.22.0 over two T4: 7.71 GiB, and a pool of 3.92."""
    report = ask("Qwen/Qwen3-8B", "nvidia-t4", f"{T4} --enable-lora", vllm="0.22.0")
    assert report.fits is True
    assert report.weights_bytes.best / GIB == pytest.approx(7.71, abs=0.02)
    assert report.kv_cache_bytes.low <= 3.92 * GIB <= report.kv_cache_bytes.high


def test_slots_and_rank_multiply_them(ask):
    flags = "--max-model-len 8192"
    without, one, many = (
        ask("meta-llama/Llama-3.1-8B-Instruct", "nvidia-h100-80gb", f"{flags} {more}", vllm="0.19.0").weights_bytes.best
        for more in ("", "--enable-lora", "--enable-lora --max-loras 4 --max-lora-rank 64")
    )
    assert many - without == pytest.approx(16 * (one - without), rel=0.001)
    assert 0.05 * GIB < one - without < 0.1 * GIB


def test_modules_that_are_named_without_adapters_switched_on_change_nothing(ask):
    plain, named = (
        ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", f"--max-model-len 8192 {more}", vllm="0.19.0")
        for more in ("", "--lora-modules a=/b --max-lora-rank 64")
    )
    assert (named.fits, named.weights_bytes) == (True, plain.weights_bytes)


@pytest.mark.parametrize(
    ("model", "flags", "vllm"),
    [
        pytest.param("Qwen/Qwen3-30B-A3B", "", "0.19.0", id="experts"),
        pytest.param("Qwen/Qwen3-VL-8B-Instruct", "", "0.19.0", id="towers"),
        pytest.param("Qwen/Qwen2.5-7B-Instruct", "", "0.7.3", id="the-first-engine"),
        pytest.param("Qwen/Qwen3-8B", "--fully-sharded-loras", "0.19.0", id="another-layout"),
    ],
)
def test_what_is_not_counted_stays_cannot_tell(ask, model, flags, vllm):
    report = ask(model, "nvidia-h200", f"--max-model-len 8192 --enable-lora {flags}", vllm=vllm)
    assert report.fits is None
    assert any("lora" in told for told in report.assumptions)


@pytest.mark.parametrize(("slots", "printed"), [(1, 7.63), (8, 8.17), (16, 8.78), (64, 12.49)])
def test_each_slot_weighs_what_was_printed(ask, slots, printed):
    flags = f"--enable-lora --max-loras {slots} --max-lora-rank 16 --max-model-len 8192 --gpu-memory-utilization 0.80"
    weights = ask("Qwen/Qwen3-4B", "nvidia-rtx-4090", flags, vllm="0.27.1").weights_bytes
    assert weights.best / 2**30 == pytest.approx(printed, rel=0.005)
    assert weights.low / 2**30 <= printed <= weights.high / 2**30
