"""A checkpoint as a device's kernels hold it, where that differs from how it is published."""

from __future__ import annotations

from dataclasses import replace

from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import LINEAR_GROUPS, AcceleratorFacts, ModelFacts, VersionRules

_HOPPER = 9
_NATIVE_FP8 = (8, 9)
_SCALES = 2 / 128
"""Bytes that a 16-bit scale for 128 parameters adds to each of them."""

_TRITON_PADDING = (1, 64)


def as_kernels_hold_it(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules
) -> ModelFacts:
    """The checkpoint as this device's kernels hold it, where that differs from how it is published.

    On Hopper the Triton kernel takes experts in MXFP4 nearly unpadded (61.29 GiB printed for gpt-oss 120b by 0.25.1,
    65.97 where Marlin pads them). ``--quantization fp8`` keeps the linear layers of a 16-bit checkpoint in 8 bits
    (3.42 GiB printed for granite 4.0 micro by 0.11.0). Below compute capability 8.9 Marlin takes 8-bit floats, and a
    scale of a block of 128 x 128 becomes one of 16 bits for each 128 of a column (34.71 GiB printed for Qwen 3.5
    35B-A3B-FP8 on an A100, 34.22 on a GB10); publishers of "dynamic" ones scale whole columns.

    Source: vllm/model_executor/layers/fused_moe/oracle/mxfp4.py of 0.19.0 to 0.25.1
    (mxfp4_round_up_hidden_size_and_intermediate_size), quantization/fp8.py, utils/marlin_utils_fp8.py
    (prepare_fp8_moe_layer_for_marlin) of 0.19.0, read 2026-11-23.
    """
    if flags.quantization == "fp8" and model.quant.scheme == "bf16":
        model = replace(model, quant=replace(model.quant, scheme="fp8", bytes_per_param=1.0005, groups=LINEAR_GROUPS))
    elif model.quant.scheme.startswith("fp8") and accelerator.compute_capability is not None:
        model = _scaled_for_marlin(model, accelerator)
    if not rules.keeps_mxfp4_unpadded or (accelerator.compute_capability or (0, 0))[0] != _HOPPER:
        return model
    layers = (replace(each, expert_padding=_TRITON_PADDING if each.expert_padding else None) for each in model.layers)
    return replace(model, layers=tuple(layers))


def _scaled_for_marlin(model: ModelFacts, accelerator: AcceleratorFacts) -> ModelFacts:
    if accelerator.supports(_NATIVE_FP8) or "dynamic" in model.name.lower():
        return model
    wider = tuple((group, int(size * (1 + _SCALES))) for group, size in model.measured_bytes if group in LINEAR_GROUPS)
    kept = tuple((group, size) for group, size in model.measured_bytes if group not in LINEAR_GROUPS)
    quant = replace(model.quant, bytes_per_param=model.quant.bytes_per_param + _SCALES)
    return replace(model, quant=quant, measured_bytes=(*wider, *kept))
