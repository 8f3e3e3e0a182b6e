"""A tensor-parallel size that vLLM cannot split the weights by is refused, and the hint names those that work."""

import pytest

from agent.errors import InputRejected


@pytest.mark.parametrize(
    ("model", "size", "why"),
    [
        ("Qwen/Qwen2.5-14B", 5, "8 key/value heads"),
        ("Qwen/Qwen3-14B", 5, "8 key/value heads"),
        ("Qwen/Qwen2.5-7B", 7, "4 key/value heads"),
        ("Qwen/Qwen2.5-7B", 28, "layers 18,944 wide"),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", 3, "5 key/value heads"),
        ("Qwen/Qwen3-8B", 3, "32 attention heads"),
    ],
)
def test_heads_and_widths_are_split_evenly(ask, model, size, why):
    with pytest.raises(InputRejected, match=why) as refused:
        ask(model, "nvidia-h100-80gb", f"-tp {size}", vllm="0.20.0")
    assert f" {size}," not in refused.value.hint


def test_the_sizes_that_work_are_named(ask):
    with pytest.raises(InputRejected) as refused:
        ask("Qwen/Qwen2.5-7B", "nvidia-h100-80gb", "-tp 7", vllm="0.20.0")
    assert "Sizes that work: 1, 2, 4." in refused.value.hint


def test_experts_are_split_over_replicas_too_and_where_no_size_works_the_hint_says_what_does(ask):
    flags = "--data-parallel-size 5 --max-model-len 4096"
    with pytest.raises(InputRejected, match="experts 768 wide must be divisible by 5 ranks") as refused:
        ask("Qwen/Qwen3-30B-A3B", "nvidia-h100-80gb", flags, vllm="0.20.0", count=5)
    assert refused.value.hint == "Give --enable-expert-parallel, or another --data-parallel-size."
    whole = ask("Qwen/Qwen3-30B-A3B", "nvidia-h100-80gb", f"{flags} --enable-expert-parallel", vllm="0.20.0", count=5)
    assert whole.reason != "unsupported"


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-7B", "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-R1"])
def test_usual_sizes_are_not_refused(ask, model):
    """Latent attention has one head to share, and every rank holds it whole."""
    assert ask(model, "nvidia-h200", "-tp 4 --max-model-len 4096", vllm="0.20.0").reason != "unsupported"


@pytest.mark.parametrize(
    ("model", "flags", "vllm", "fits"),
    [
        ("Qwen/Qwen3-30B-A3B-FP8", "-tp 4", "0.20.0", False),
        ("Qwen/Qwen3-30B-A3B-FP8", "-tp 8", "0.28.0", False),
        ("Qwen/Qwen3-30B-A3B-FP8", "-tp 2", "0.20.0", True),
        ("Qwen/Qwen3-30B-A3B-FP8", "-tp 4 --enable-expert-parallel", "0.20.0", True),
        ("Qwen/Qwen3-30B-A3B-FP8", "-tp 4", "0.33.0", True),
        ("Qwen/Qwen3-235B-A22B-FP8", "-tp 8", "0.20.0", False),
        ("Qwen/Qwen3-30B-A3B", "-tp 4", "0.20.0", True),
        ("RedHatAI/Qwen3-30B-A3B-FP8-dynamic", "-tp 4", "0.20.0", True),
        ("someone/Qwen3-30B-A3B-FP8", "-tp 4", "0.20.0", None),
        ("Qwen/Qwen3-4B-FP8", "-tp 8", "0.20.0", False),
        ("Qwen/Qwen3-4B-FP8", "-tp 8", "0.33.0", False),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct-FP8", "-tp 8 --enable-expert-parallel", "0.20.0", None),
    ],
)
def test_blocks_of_weights_that_share_a_scale_are_not_cut(ask, model, flags, vllm, fits):
    """vLLM: "The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128"."""
    report = ask(model, "nvidia-h100-80gb", f"--max-model-len 8192 --max-num-seqs 64 {flags}", vllm=vllm)
    assert report.fits is fits
    assert any("share a scale" in told for told in report.assumptions) is (fits is not True)


def test_replicas_split_experts_too(ask):
    flags = "-tp 16 -dp 2 --max-model-len 8192"
    assert ask("deepseek-ai/DeepSeek-R1", "nvidia-h200", flags, vllm="0.20.0", count=32).fits is False
