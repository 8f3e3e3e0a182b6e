"""A checkpoint whose type of weights a device is too old for does not start."""

import pytest


@pytest.mark.parametrize(
    ("model", "card", "vllm", "fits"),
    [
        ("openai/gpt-oss-20b", "nvidia-t4", "0.20.0", False),
        ("openai/gpt-oss-20b", "nvidia-v100-32gb", "0.20.0", False),
        ("Qwen/Qwen3-8B-FP8", "nvidia-v100-16gb", "0.20.0", False),
        ("Qwen/Qwen3-8B-FP8", "nvidia-t4", "0.12.0", False),
        ("Qwen/Qwen3-4B-AWQ", "nvidia-v100-32gb", "0.20.0", False),
        ("Qwen/Qwen3-4B-AWQ", "nvidia-t4", "0.20.0", True),
        ("nvidia/Qwen3-8B-NVFP4", "nvidia-v100-32gb", "0.20.0", False),
        ("Qwen/Qwen3-4B", "nvidia-v100-32gb", "0.20.0", True),
    ],
)
def test_a_type_of_weights_has_its_least_compute_capability(ask, model, card, vllm, fits):
    report = ask(model, card, "--max-model-len 2048 --max-num-seqs 16 --gpu-memory-utilization 0.85", vllm=vllm)
    assert report.fits is fits
    assert any("need compute capability" in told for told in report.assumptions) is (not fits)


def test_quantising_at_load_has_the_same_bound(ask):
    asked = "--max-model-len 2048 --quantization fp8"
    assert ask("Qwen/Qwen3-4B", "nvidia-v100-32gb", asked, vllm="0.20.0").fits is False
