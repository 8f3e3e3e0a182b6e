"""What kernels add to a checkpoint's bytes, and where they do not."""

from dataclasses import replace

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.bounds import GIB, MIB
from agent.fit.flags.flags import Flags
from agent.fit.memory.held_by_kernels import as_kernels_hold_it
from agent.fit.memory.weights import plan_weights
from agent.fit.model_and_hardware import TensorGroup

CATALOGUE = load_fit_catalogue()


@pytest.mark.parametrize(
    ("name", "card", "gib"),
    [
        ("Qwen/Qwen3.5-35B-A3B-FP8", "nvidia-a100-80gb", 34.71),
        ("Qwen/Qwen3.5-35B-A3B-FP8", "nvidia-gb10", 34.22),
        ("RedHatAI/Qwen3-8B-FP8-dynamic", "nvidia-a100-80gb", 8.8),
    ],
)
def test_eight_bit_floats_carry_scales_of_marlin_on_older_cards(name, card, gib):
    """Blocks of 128 x 128 become columns of 128; whole columns stay what they are."""
    model, rules = CATALOGUE.models.find(name), CATALOGUE.rules("0.19.0")
    held = as_kernels_hold_it(model, CATALOGUE.accelerator(card), Flags(), rules)
    assert plan_weights(held, Flags(), rules, batched_tokens=2048).loaded.best / GIB == pytest.approx(gib, rel=0.005)


def test_scales_of_marlin_are_added_to_bytes_that_were_read_too():
    model = replace(CATALOGUE.models.find("Qwen/Qwen3-8B-FP8"), measured_bytes=((TensorGroup.MLP, 128 * MIB),))
    held = as_kernels_hold_it(model, CATALOGUE.accelerator("nvidia-a100-80gb"), Flags(), CATALOGUE.rules("0.33"))
    assert dict(held.measured_bytes)[TensorGroup.MLP] == 130 * MIB
