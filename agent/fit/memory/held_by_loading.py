"""What flags about loading keep on the device beside the weights: sleep mode's pool, a loader's second copy."""

from __future__ import annotations

from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import AcceleratorFacts, ModelFacts

_SLEEP = "enable-sleep-mode"
_KEPT_AS_LOADED = frozenset({"bf16", "fp8", "fp8-block"})
_SURPLUS = Bounds(low=0, best=0, high=7 * GIB // 10)
"""How much larger than without it the cache came out at the most where nothing is given back while loading."""

_NONE = Bounds.exactly(0)


def flags_counted(model: ModelFacts, flags: Flags) -> frozenset[str]:
    """Sleep mode, where loading gives nothing back to its pool.

    What is given back is taken for free and becomes part of the cache: Gemma 4 12B, whose output head of 1.88 GiB is
    built before it is tied, was given 13.77 GiB on an A10 where 10.03 are left without sleep mode, and died (0.26.0).
    Kernels that repack weights give back too.
    """
    gives_back = model.head_built_before_tying or model.quant.scheme not in _KEPT_AS_LOADED
    return frozenset() if gives_back or flags.quantization else frozenset({_SLEEP})


def sleep_surplus(flags: Flags) -> Bounds:
    """What sleep mode may take beyond its weights, bytes per device (a pair of start-ups of 0.11.0)."""
    return _SURPLUS if any(other.name == _SLEEP for other in flags.others) else _NONE


def loaders_copy(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, weights: Bounds) -> Bounds:
    """A checkpoint that fastsafetensors may keep where host and device share their memory, bytes.

    Qwen 3.6 35B-A3B in NVFP4 left 50 GiB of a GB10 beside its cache twice, of which 25 are explained (0.28.0); four
    start-ups with other loaders left 27. The cause was not proved; in 16 bits it cannot be a copy, for Gemma 4 31B of
    59 GiB started at 0.8 of that machine (0.19.1).
    """
    narrow = model.quant.scheme != "bf16"
    asked = narrow and accelerator.unified and flags.untyped("load-format") == "fastsafetensors"
    return Bounds(low=0, best=0, high=int(weights.high * 1.25)) if asked else _NONE
