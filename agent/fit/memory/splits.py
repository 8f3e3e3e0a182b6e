"""What tensor parallelism cannot split: heads, widths of layers, and blocks of weights that share a scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd

from agent.errors import InputRejected
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import AcceleratorFacts, AttentionKind, LayerGroup, ModelFacts, TensorGroup
from agent.fit.version_rules import VersionRules

_SIZES = (1, 2, 4, 8, 16, 32, 64)
_WHOLE_WIDTH = 32
"""Widths that are no multiple stand for layers of another shape, such as those without a gate."""

_BLOCK, _LEAST_BLOCK = 128, 32
_REFINES_FROM = (0, 29)
_IN_BLOCKS = ("qwen/", "deepseek-ai/", "moonshotai/")
_BY_CHANNEL = ("redhatai/", "neuralmagic/", "nvidia/", "zai-org/", "meta-llama/")


def check_shape(model: ModelFacts, accelerator: AcceleratorFacts, count: int, flags: Flags) -> None:
    """Refuse what can never be meant.

    Raises:
        InputRejected: No device, fewer devices than ranks, or a tensor-parallel size by which layers cannot be split.
    """
    if count < 1:
        raise InputRejected(f"count is {count}", why="a model needs at least one device", hint="give --count 1 or more")
    if count < flags.world:
        raise InputRejected(
            f"{count} x {accelerator.name} cannot run tensor x pipeline parallel {flags.tp} x {flags.pp}",
            why=f"that needs {flags.world} devices",
            hint=f"Give --count {flags.world}, or --tensor-parallel-size {count}.",
        )
    if (why := next(_unsplit(model, flags), None)) is not None:
        known = [size for size in _SIZES if is_split_by(model, replace(flags, tensor_parallel_size=size))]
        raise InputRejected(
            f"--tensor-parallel-size {flags.tp} does not work for {model.name}",
            why=why,
            hint=f"Sizes that work: {', '.join(map(str, known))}."
            if known
            else "Give --enable-expert-parallel, or another --data-parallel-size.",
        )


def is_split_by(model: ModelFacts, flags: Flags) -> bool:
    """True where every layer can be split over the ranks."""
    return next(_unsplit(model, flags), None) is None


def _unsplit(model: ModelFacts, flags: Flags) -> Iterator[str]:
    """Why not, one sentence each.

    Source: QKVParallelLinear and divide in vllm/model_executor/layers/linear.py and vllm/distributed/utils.py, the
    assertion on intermediate_size in layers/fused_moe/layer.py (config.py from 0.28), of 0.8.5 to 0.33.0, read
    2026-11-26. A layer without a gate may be counted as one of two thirds of its width.
    """
    for layer in model.layers:
        if layer.heads % flags.tp:
            yield f"{layer.heads} attention heads must be divisible by it"
        elif (
            layer.kind is not AttentionKind.LATENT
            and layer.kv_heads
            and max(layer.kv_heads, flags.tp) % min(layer.kv_heads, flags.tp)
        ):
            yield f"{layer.kv_heads} key/value heads must be divisible by it, or divide it"
        width = layer.intermediate
        if width % _WHOLE_WIDTH == 0 and width % flags.tp and width * 3 // 2 % flags.tp:
            yield f"layers {width:,} wide must be divisible by it"
        inner, ranks = (layer.expert_shape or (0, layer.expert_intermediate))[1], _ranks_of_experts(layer, flags)
        if inner % _WHOLE_WIDTH == 0 and inner % ranks:
            yield f"experts {inner:,} wide must be divisible by {ranks} ranks, unless --enable-expert-parallel is given"


def _ranks_of_experts(layer: LayerGroup, flags: Flags) -> int:
    """Ranks over which each expert is split: replicas count too, and none where ranks hold whole experts."""
    return 1 if flags.enable_expert_parallel or not layer.experts else flags.tp * (flags.data_parallel_size or 1)


def judge_blocks(model: ModelFacts, flags: Flags, rules: VersionRules) -> tuple[list[str], list[str]]:
    """Blocks of 128 x 128 8-bit floats that ranks would have to cut: what is refused, and what may be.

    From 0.29 on routed experts are loaded with smaller blocks, of 32 at least. Who stores FP8 by blocks, and who by
    channels, is known of some publishers.

    Source: Fp8MoEMethod.create_weights in vllm/model_executor/layers/quantization/fp8.py of 0.8.5 to 0.30.0,
    validate_fp8_block_shape in its utils/fp8_utils.py of 0.20.0 and 0.33.0, refine_fp8_moe_block_shape in
    layers/fused_moe/oracle/fp8.py of 0.33.0, read 2026-11-26.
    """
    quant, name = model.quant, model.name.lower()
    if quant.scheme not in {"fp8", "fp8-block"} or (quant.scheme == "fp8" and name.startswith(_BY_CHANNEL)):
        return [], []
    cut = [each for layer in model.layers for each in _cut_blocks(model, layer, flags, rules)]
    sure = quant.scheme == "fp8-block" or name.startswith(_IN_BLOCKS)
    sentences = [f"{each}: blocks of 128 that share a scale cannot be cut" for each in dict.fromkeys(cut)]
    shared = any(
        layer.shared_intermediate % flags.tp or layer.shared_intermediate // flags.tp % _BLOCK
        for layer in model.layers
        if layer.shared_intermediate and flags.tp > 1
    )
    beside = ["whether the shared expert's blocks of 128 that share a scale are cut was not read"] if shared else []
    return (sentences, beside) if sure else ([], sentences + beside)


def _cut_blocks(model: ModelFacts, layer: LayerGroup, flags: Flags, rules: VersionRules) -> Iterator[str]:
    ranks = _ranks_of_experts(layer, flags)
    inner = layer.expert_intermediate // ranks
    if TensorGroup.EXPERTS in model.quant.groups and ranks > 1 and inner % _BLOCK:
        refined = rules.numbers >= _REFINES_FROM and gcd(_BLOCK, inner, model.hidden) >= _LEAST_BLOCK
        if not refined:
            yield f"{ranks} ranks leave {inner:,} of each expert's {layer.expert_intermediate:,} to one"
    inner = layer.intermediate // flags.tp
    if TensorGroup.MLP in model.quant.groups and flags.tp > 1 and inner % _BLOCK:
        yield f"{flags.tp} ranks leave {inner:,} of {layer.intermediate:,} to one"
