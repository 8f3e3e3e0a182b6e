"""Storages that a name announces and no entry describes."""

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.bounds import GIB
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.weights import plan_weights
from agent.fit.model_and_hardware import TensorGroup


@pytest.fixture(scope="module")
def catalogue():
    return load_fit_catalogue()


@pytest.mark.parametrize("announced", ["NVFP4-FP8", "W4A16-FP8", "AWQ-bf16"])
def test_of_several_widths_the_widest_counts_beside_recurrent_layers_too(catalogue, announced):
    """Once NVFP4-FP8 was taken as 17 % heavier at most, and a checkpoint with eight-bit experts "fitted" a smaller card."""
    one = catalogue.models.find(f"x/Qwen3.6-35B-A3B-{announced.partition('-')[0]}").quant
    several = catalogue.models.find(f"x/Qwen3.6-35B-A3B-{announced}").quant
    assert several.heavier > 0.75 > one.heavier


def test_four_bit_checkpoints_with_recurrent_layers_may_be_heavier(catalogue):
    """Printed: 11.62 GiB on each of two cards for one publisher's AWQ; others leave less in 16 bits."""
    heavy = catalogue.models.find("QuantTrio/Qwen3.6-35B-A3B-AWQ")
    flags, rules = parse_flags("-tp 2"), catalogue.rules("0.20")
    loaded = plan_weights(heavy, flags, rules, batched_tokens=2048).loaded
    assert loaded.low < 10 * GIB < 11.62 * GIB < loaded.high
    assert catalogue.models.find("Qwen/Qwen3.6-35B-A3B-FP8").quant.heavier == 0


@pytest.mark.parametrize(
    ("base", "words", "least"),
    [
        ("granite-4.0-h-small", "FP8-dynamic", 0.14),
        ("granite-4.0-h-tiny", "FP8-dynamic", 0.10),
        ("granite-4.0-h-small", "quantized.w8a8", 0.14),
        ("Llama-4-Scout-17B-16E-Instruct", "quantized.w8a8", 0.08),
        ("GLM-4.7-Flash", "FP8-Dynamic", 0.07),
    ],
)
def test_eight_bits_by_others_may_leave_all_but_the_experts_wide(catalogue, base, words, least):
    """As large a share as the shape says: GLM 4.7 Flash's is 2 of 28.8 GiB, granite's hybrids have more."""
    quant = catalogue.models.find(f"someone/{base}-{words}").quant
    assert least < quant.heavier < least + 0.06


def test_recurrent_layers_stay_wide_in_eight_bits_by_redhat_and_may_by_others(catalogue):
    """Qwen 3.5 4B as FP8-dynamic printed 5.67 GiB by 0.21.0 without its tower (index id 55881767832)."""
    rules, flags = catalogue.rules("0.21.0"), parse_flags("--language-model-only")
    redhat, others, own = (
        plan_weights(catalogue.models.find(name), flags, rules, batched_tokens=2048).loaded
        for name in ("RedHatAI/Qwen3.5-4B-FP8-dynamic", "someone/Qwen3.5-4B-FP8", "Qwen/Qwen3.5-4B-FP8")
    )
    assert redhat.best / GIB == pytest.approx(5.67, rel=0.02)
    assert others.best == own.best < 0.9 * redhat.best
    assert own.high < redhat.best < others.high


def test_without_experts_eight_bits_are_eight_bits(catalogue):
    assert catalogue.models.find("someone/Qwen3-32B-FP8-dynamic").quant.heavier == 0


def test_four_bit_floats_leave_recurrent_layers_beside_experts_wide_and_integers_all_but_experts(catalogue):
    floats, integers, own = (
        catalogue.models.find(name).quant.groups
        for name in ("me/Qwen3.5-122B-A10B-NVFP4", "me/Qwen3.5-122B-A10B-GPTQ-Int4", "nvidia/Qwen3.5-122B-A10B-NVFP4")
    )
    assert TensorGroup.RECURRENT not in floats
    assert {TensorGroup.ATTENTION, TensorGroup.MLP, TensorGroup.EXPERTS} < floats
    assert integers == {TensorGroup.EXPERTS}
    assert own == {TensorGroup.EXPERTS}
    nemotron = catalogue.models.find("me/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4").quant.groups
    assert TensorGroup.RECURRENT in nemotron


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("Qwen/Qwen3.5-35B-A3B-GPTQ-Int4", 21.05),
        ("Qwen/Qwen3.5-122B-A10B-GPTQ-Int4", 68.36),
        ("Qwen/Qwen3.5-27B-GPTQ-Int4", 27.51),
    ],
)
def test_what_qwen_quantised_itself_leaves_all_beside_the_feed_forward_wide(catalogue, name, printed):
    """Printed by 0.17.1 and 0.20.2; the 27B of a tuner with the same exceptions."""
    held = plan_weights(catalogue.models.find(name), parse_flags(""), catalogue.rules("0.19.0"), batched_tokens=2048)
    assert held.loaded.best / GIB == pytest.approx(printed, rel=0.005)
    assert held.loaded.high / GIB < printed * 1.06


def test_a_byte_a_parameter_may_hardly_be_more(catalogue):
    """Printed: 33.88 GiB on each of two cards by 0.19.0, 67.7 on one."""
    model = catalogue.models.find("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic")
    held = plan_weights(model, parse_flags(""), catalogue.rules("0.19.0"), batched_tokens=2048)
    assert held.loaded.low / GIB < 67.7 < held.loaded.high / GIB < 67.7 * 1.02
