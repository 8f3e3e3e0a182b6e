"""A checkpoint as a device's kernels hold it, where that differs from how it is published."""

from __future__ import annotations

from dataclasses import replace

from agent.fit.bounds import GIB, NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective
from agent.fit.model_and_hardware import (
    LINEAR_GROUPS,
    AcceleratorFacts,
    AcceleratorKind,
    LayerGroup,
    ModelFacts,
    TensorGroup,
)
from agent.fit.version_rules import VersionRules

_HOPPER = 9
_NATIVE_FP8 = (8, 9)
_NATIVE_BF16 = (8, 0)
_ROCM_FP8 = ("amd-mi3", "amd-rx-90", "amd-r9700")
"""Cards of AMD with 8-bit floats: supports_fp8 in vllm/platforms/rocm.py (gfx94, gfx95, gfx12), read 2026-11-26."""
_SCALES = 2 / 128
"""Bytes that a 16-bit scale for 128 parameters adds to each of them."""

_LOADED = {"fp8": ("fp8", 1.0005), "bitsandbytes": ("bnb-4bit", 0.5625)}
"""By ``--quantization``: how linear layers are kept that were quantised while loading, and the bytes of a parameter
with its scales. Those of bitsandbytes are unpacked to 32 bits for each 64."""

_FEW_GRAPHS = 16
"""Largest captured size at which graphs of NVFP4 experts were seen to take no more; at the default they took much."""

_GRAPHS_OF_NVFP4 = Bounds(low=0, best=0, high=int(14.2 * GIB))
"""All that GLM 4.7 lost between its pool and its sampler's warm-up, other graphs included."""

_WIDEST_NVFP4 = 92 * 8 * (5120 + 3 * 384)
"""Layers x visited experts x the widths of one, as GLM 4.7 had them on each of four cards."""

_NARROWER_MORE = 1.5
"""How much more than by that measure graphs of narrower experts may take; assumed."""

_WORKSTATION = (12, 0)
_GRAPHS_COUNTED_FROM = (0, 19)
_TRITON_FROM = (0, 12)
"""0.11.2 served gpt-oss on Hopper by Marlin, whose padding its 65.97 GiB show, 0.14.1 by Triton (64.38 GiB)."""

_TRITON_PADDING = (1, 64)
_FOUR_BITS = frozenset({"awq", "gptq", "w4a16", "w4a16-g32"})
_ROCM_EXPERTS = 0.06
"""Share by which experts in four bits may be heavier there: 17.54 GiB printed by an R9700 for Qwen 3 30B-A3B as
AWQ-4bit, 16.9 counted (deepindeepsea/r9700-vllm-blogs)."""

_ROCM_PADDING, _ROCM_LESS = (256, 256), 0.09
"""Multiples of 256 on CDNA 4 and in older versions, of 128 elsewhere, which is up to 9 % less."""

_ROW_PADDING, _PADDED_MULTIPLE = 256, 512
_ROCM_ROWS = 0.07
"""What padded rows may add to 8-bit floats that were made while loading; whether all versions pad them was not read."""


def flashinfer_before_hopper(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags) -> Bounds:
    """What FlashInfer's attention may hold on each of several older cards.

    A flag asks for it, or a cache in 8 bits, which nothing else reads below compute capability 8.9 (see support.py).
    Qwen 3.6 35B-A3B over four A100 left 2.7 and 2.8 GiB less than the best estimate, in 16 bits and in 8 (0.27.0,
    ChuDinhKlopp/inference-bench, manifests/); what took it is not known. Alone, beside recurrent layers too, no pool
    was under its range.
    """
    bytes_by_it = (flags.kv_cache_dtype or "").startswith("fp8") and not accelerator.supports(_NATIVE_FP8)
    asked = bytes_by_it or (flags.untyped("attention-backend") or "").upper() == "FLASHINFER"
    older = accelerator.kind is AcceleratorKind.CUDA and (accelerator.compute_capability or (0, 0))[0] < _HOPPER
    recurrent = any(layer.recurrent is not None for layer in model.layers)
    unexplained = asked and older and recurrent and flags.world > 1
    return Bounds(low=0, best=0, high=3 * GIB) if unexplained else NOTHING


def as_kernels_hold_it(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules
) -> ModelFacts:
    """The checkpoint as this device's kernels hold it, where that differs from how it is published.

    On Hopper the Triton kernel takes experts in MXFP4 nearly unpadded (61.29 GiB printed for gpt-oss 120b by 0.25.1,
    65.97 where Marlin pads them). ``--quantization fp8`` keeps the linear layers of a 16-bit checkpoint in 8 bits
    (3.42 GiB printed for granite 4.0 micro by 0.11.0), ``--quantization bitsandbytes`` in 4 (2.07 GiB printed for
    Qwen 2.5 3B by 0.18.0). Below compute capability 8.9 Marlin takes 8-bit floats, and a
    scale of a block of 128 x 128 becomes one of 16 bits for each 128 of a column (34.71 GiB printed for Qwen 3.5
    35B-A3B-FP8 on an A100, 34.22 on a GB10); publishers of "dynamic" ones scale whole columns. On ROCm rows of 8-bit
    floats that are scaled by blocks are 256 bytes apart (29.38 GiB printed for Qwen 3.8 27B-FP8 on an MI355X, 28.54 on
    an H100).

    Source: vllm/model_executor/layers/fused_moe/oracle/mxfp4.py of 0.19.0 to 0.25.1 and 0.33.0
    (mxfp4_round_up_hidden_size_and_intermediate_size), quantization/mxfp4.py of 0.11.0 and 0.14.1, quantization/fp8.py,
    utils/marlin_utils_fp8.py (prepare_fp8_moe_layer_for_marlin) of 0.19.0, utils/fp8_utils.py (_maybe_pad_fp8_weight)
    of 0.18.0 to 0.33.0, model_executor/model_loader/bitsandbytes_loader.py (_unquantized_generator, _dequantize_dq) of
    commit 0406fb9f, read 2026-11-26.
    """
    if flags.quantization in _LOADED and model.quant.scheme == "bf16":
        model = _quantised_while_loading(model, *_LOADED[flags.quantization])
        heavier = _ROCM_ROWS if accelerator.kind is AcceleratorKind.ROCM else 0.0
        model = replace(model, quant=replace(model.quant, heavier=heavier))
    elif model.quant.scheme in _FOUR_BITS and accelerator.kind is AcceleratorKind.ROCM:
        heavier = _ROCM_EXPERTS if any(layer.experts for layer in model.layers) else 0.0
        return replace(model, quant=replace(model.quant, heavier=max(heavier, model.quant.heavier)))
    elif model.quant.scheme == "mxfp4" and accelerator.kind is AcceleratorKind.ROCM:
        quant = replace(model.quant, uncertainty=max(_ROCM_LESS, model.quant.uncertainty))
        return replace(model, quant=quant, layers=_padded(model, _ROCM_PADDING))
    elif model.quant.scheme.startswith("fp8") and accelerator.kind is AcceleratorKind.ROCM:
        model = _padded_for_rocm(model, flags)
    elif model.quant.scheme.startswith("fp8") and accelerator.compute_capability is not None:
        model = _scaled_for_marlin(model, accelerator)
    if not rules.keeps_mxfp4_unpadded or (accelerator.compute_capability or (0, 0))[0] != _HOPPER:
        return model
    if not any(each.expert_padding for each in model.layers):
        return model
    return replace(model, layers=_padded(model, _TRITON_PADDING))


def _padded(model: ModelFacts, padding: tuple[int, int]) -> tuple[LayerGroup, ...]:
    """The layers, their experts padded to these multiples where they are padded at all."""
    return tuple(replace(each, expert_padding=padding if each.expert_padding else None) for each in model.layers)


def is_counted_while_loading(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags) -> bool:
    """8-bit floats where the device has them, bitsandbytes for dense text models: the rest was not seen."""
    if model.served_bytes is not None:
        return False
    if flags.quantization == "fp8":
        return accelerator.supports(_NATIVE_FP8) or accelerator.name.startswith(_ROCM_FP8)
    plain = all(layer.recurrent is None and not layer.experts for layer in model.layers)
    text = model.vision is None and model.audio is None
    return flags.quantization == "bitsandbytes" and plain and text and accelerator.supports(_NATIVE_BF16)


def graphs_of_narrow_experts(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, run: Effective
) -> Bounds:
    """What graphs of NVFP4 experts may take on workstation Blackwell before 0.19 beyond those of other models.

    GLM 4.7 over four cards left 1.7 of 15.9 GiB (0.15.1, utilisation 0.9). Other start-ups took nothing of the kind,
    so it is what they may need, less where layers, visited experts and their widths are fewer, for buffers are as wide
    as those; no more is known of experts that are wider (``beside_narrow_experts``).
    """
    width = _width_of_experts(model, flags)
    if not _captures_nvfp4(model, accelerator, run) or rules.numbers >= _GRAPHS_COUNTED_FROM or width > _WIDEST_NVFP4:
        return NOTHING
    share = min(1.0, _NARROWER_MORE * width / _WIDEST_NVFP4)
    return replace(_GRAPHS_OF_NVFP4, high=int(_GRAPHS_OF_NVFP4.high * share))


def beside_narrow_experts(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, run: Effective
) -> str:
    """What experts in four bits took before 0.19 beside weights and cache that is not modelled; "" where all is.

    gpt-oss 120B with one sequence ran out of memory on an H100 where 10 GiB are counted for its cache (0.14.1,
    utilisation 0.97; vLLM issue 33155).

    Args:
        model: Its experts and how they are stored.
        accelerator: Which kernels it takes.
        flags: Over how many cards an expert is split.
        rules: Those of a version before 0.19.
        run: How many sizes are captured.
    """
    if _captures_nvfp4(model, accelerator, run) and _width_of_experts(model, flags) > _WIDEST_NVFP4:
        return "what graphs of NVFP4 experts this wide take here before 0.19 is not modelled"
    on_hopper = (accelerator.compute_capability or (0, 0))[0] == _HOPPER
    if _is_of_experts(model, "mxfp4") and on_hopper and rules.numbers >= _TRITON_FROM:
        return "what the Triton kernel of MXFP4 experts took here from 0.12 to 0.18 is not modelled"
    return ""


def _is_of_experts(model: ModelFacts, scheme: str) -> bool:
    narrow = model.quant.scheme == scheme and TensorGroup.EXPERTS in model.quant.groups
    return narrow and any(layer.experts for layer in model.layers)


def _captures_nvfp4(model: ModelFacts, accelerator: AcceleratorFacts, run: Effective) -> bool:
    return _is_of_experts(model, "nvfp4") and accelerator.supports(_WORKSTATION) and run.largest_captured > _FEW_GRAPHS


def _width_of_experts(model: ModelFacts, flags: Flags) -> int:
    ranks = 1 if flags.enable_expert_parallel else flags.tp
    return sum(
        layer.count * layer.active_experts * (model.hidden + 3 * layer.expert_intermediate // ranks)
        for layer in model.layers
        if layer.experts
    )


def _quantised_while_loading(model: ModelFacts, scheme: str, bytes_per_param: float) -> ModelFacts:
    quant = replace(model.quant, scheme=scheme, bytes_per_param=bytes_per_param, groups=LINEAR_GROUPS)
    share = bytes_per_param / model.quant.base_bytes_per_param
    measured = ((group, int(size * share) if group in LINEAR_GROUPS else size) for group, size in model.measured_bytes)
    return replace(model, quant=quant, measured_bytes=tuple(measured))


def _scaled_for_marlin(model: ModelFacts, accelerator: AcceleratorFacts) -> ModelFacts:
    if accelerator.supports(_NATIVE_FP8) or "dynamic" in model.name.lower():
        return model
    wider = tuple((group, int(size * (1 + _SCALES))) for group, size in model.measured_bytes if group in LINEAR_GROUPS)
    kept = tuple((group, size) for group, size in model.measured_bytes if group not in LINEAR_GROUPS)
    quant = replace(model.quant, bytes_per_param=model.quant.bytes_per_param + _SCALES)
    return replace(model, quant=quant, measured_bytes=(*wider, *kept))


def _padded_for_rocm(model: ModelFacts, flags: Flags) -> ModelFacts:
    """Rows of the linear layers but the experts', each with its padding; VLLM_ROCM_FP8_PADDING=0 leaves it out."""
    if "dynamic" in model.name.lower():
        return model
    added = {group: _share_of_padding(model.hidden) for group in (TensorGroup.ATTENTION, TensorGroup.RECURRENT)}
    if dense := max((layer.intermediate for layer in model.layers), default=0):
        down = _share_of_padding(dense // flags.tp)
        added[TensorGroup.MLP] = (2 * _share_of_padding(model.hidden) + down) / 3
    added = {group: share for group, share in added.items() if share and group in model.quant.groups}
    widths = dict(model.quant.widths)
    for group, share in added.items():
        widths[group] = widths.get(group, model.quant.bytes_per_param) + share
    measured = tuple((group, int(size * (1 + added.get(group, 0)))) for group, size in model.measured_bytes)
    quant = replace(model.quant, widths=tuple(widths.items()), uncertainty=max(0.05, model.quant.uncertainty))
    return replace(model, quant=quant, measured_bytes=measured)


def _share_of_padding(row: int) -> float:
    return _ROW_PADDING / row if row and row % _PADDED_MULTIPLE == 0 else 0.0
