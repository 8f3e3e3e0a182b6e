"""What flags about loading keep on the device beside the weights: sleep mode's pool, a loader's second copy."""

from __future__ import annotations

from agent.fit.bounds import GIB, NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.weights import WeightPlan
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, ModelFacts

_SLEEP = "enable-sleep-mode"
_KEPT_AS_LOADED = frozenset({"bf16", "fp8", "fp8-block"})
_REPACKED_TO_SIZE, _LAYERS_KEPT = frozenset({"awq", "gptq", "w4a16", "w4a16-g32"}), 8
_SURPLUS = 7 * GIB // 10
"""How much larger than without it the cache came out at the most where nothing is given back while loading."""


def flags_counted(accelerator: AcceleratorFacts, flags: Flags) -> frozenset[str]:
    """Sleep mode on CUDA, but where weights are quantised while loading; ROCm has it from 0.12 on, on some cards.

    Source: is_sleep_mode_available in vllm/platforms/interface.py of 0.8.5 to 0.33.0, read 2026-11-26.
    """
    is_cuda = accelerator.kind is AcceleratorKind.CUDA
    return frozenset({_SLEEP}) if is_cuda and not flags.quantization else frozenset()


def sleep_surplus(model: ModelFacts, flags: Flags, plan: WeightPlan) -> Bounds:
    """How much larger or smaller sleep mode may make the cache, bytes per device (a pair of start-ups of 0.11.0).

    What loading gives back is taken for free and becomes part of the cache: Gemma 4 12B, whose output head of 1.88 GiB
    is built before it is tied, was given 13.77 GiB on an A10 where 10.03 are left without it, and died (0.26.0).
    Kernels that repack weights give back too. Where a repacked tensor is as large as the published one, that takes the
    room of the layer before, so a few layers remain: 3.7 GiB in all of that 12B, at most 2.9 of a 27B in four bits
    (0.26.0 and 0.28.0).

    Source: use_memory_pool in vllm/device_allocator/cumem.py of 0.26.0, gptq_marlin_repack and awq_marlin_repack in
    vllm/_custom_ops.py there, read 2026-11-27.
    """
    if not flags.asks_for({_SLEEP}):
        return NOTHING
    repacked = 0 if model.quant.scheme in _KEPT_AS_LOADED else plan.loaded.high
    if model.quant.scheme in _REPACKED_TO_SIZE:
        repacked = repacked * _LAYERS_KEPT // max(_LAYERS_KEPT, model.layer_count)
    given_back = plan.transient_bytes + repacked + _SURPLUS
    return Bounds(low=-given_back, best=0, high=given_back)


def loaders_copy(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, weights: Bounds) -> Bounds:
    """A checkpoint that fastsafetensors may keep where host and device share their memory, bytes.

    Qwen 3.6 35B-A3B in NVFP4 left 50 GiB of a GB10 beside its cache twice, of which 25 are explained (0.28.0); four
    start-ups with other loaders left 27. The cause was not proved; in 16 bits it cannot be a copy, for Gemma 4 31B of
    59 GiB started at 0.8 of that machine (0.19.1).
    """
    narrow = model.quant.scheme != "bf16"
    asked = narrow and accelerator.unified and flags.untyped("load-format") == "fastsafetensors"
    return Bounds(low=0, best=0, high=int(weights.high * 1.25)) if asked else NOTHING
