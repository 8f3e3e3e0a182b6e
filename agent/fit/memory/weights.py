"""Weights per device: what is sharded, replicated, offloaded, rounded by the allocator, and briefly held twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from agent.fit.bounds import MIB, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.kv_cache import own_mtp, stage_layers
from agent.fit.model_and_hardware import (
    LINEAR_GROUPS,
    AttentionKind,
    LayerGroup,
    ModelFacts,
    TensorGroup,
    TowerFacts,
)
from agent.fit.version_rules import VersionRules

_WEIGHING = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "language_model_only", "mm_encoder_tp_mode",
    "limit_mm_per_prompt", "speculative_config", "cpu_offload_gb", "cpu_offload_params",
)  # fmt: skip
"""The flags that move weights: a search over all others finds the sum remembered."""

_weighing = attrgetter(*_WEIGHING)
_REMEMBERED = 512
"""Sums kept in memory, each of one checkpoint with one set of flags that move weights; a search asks for some 100."""

_MODALITIES = {TensorGroup.VISION: ("image", "video"), TensorGroup.AUDIO: ("audio",)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """One tensor as vLLM holds it on one device.

    Attributes:
        group: Its part of the checkpoint.
        params: Parameters on this device.
        stored_params: Parameters in the checkpoint behind it, over all devices of the tensor-parallel group.
        layer: Index of its decoder layer, None outside the decoder.
    """

    group: TensorGroup
    params: int
    stored_params: int
    layer: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightPlan:
    """Where the weights of one device are.

    Attributes:
        by_group: Bytes on the device before offload, by tensor group.
        loaded: What "Model loading took" prints.
        offloaded_bytes: Bytes moved to the host by ``--cpu-offload-gb``.
        transient_bytes: The output head that is built before it is tied.
    """

    by_group: tuple[tuple[TensorGroup, int], ...]
    loaded: Bounds
    offloaded_bytes: int
    transient_bytes: int


def plan_weights(model: ModelFacts, flags: Flags, rules: VersionRules, *, batched_tokens: int) -> WeightPlan:
    """Lay the weights out on the fullest device.

    Args:
        model: Facts of the checkpoint; measured bytes win over arithmetic.
        flags: Parallelism, offload, multimodal limits.
        rules: Allocator and offload habits of the version.
        batched_tokens: Tokens of one batch, for buffers sized by it.

    Returns:
        Bytes of one device. Uncertain storage widens the bounds, allocator rounding lifts them.
    """
    held = _remembered(model, _weighing(flags), rules.keeps_large_blocks_whole, rules.offloads_towers_first)
    buffers = model.rope_cache_bytes + _batch_buffers(model, batched_tokens)
    raw = held.raw_bytes + buffers
    doubt = 0 if model.measured_bytes else int(held.quantised_bytes * model.quant.uncertainty) + _narrower(model, flags)
    lighter = 0 if model.measured_bytes else int(held.quantised_bytes * model.quant.lighter)
    wider = 0 if model.measured_bytes else int(held.quantised_bytes * model.quant.heavier)
    best = max(0, raw + held.lost_bytes - held.moved_bytes)
    spread = max(64 * MIB, best // 100)
    low, high = max(0, raw - held.moved_bytes - max(doubt, lighter) - 16 * MIB), best + doubt + wider + spread
    if model.served_bytes is not None:
        low, best, high = (
            part // flags.tp for part in (model.served_bytes.low, model.served_bytes.best, model.served_bytes.high)
        )
        guessing = _guessing_beside_printed(model, flags)
        best, high = best + guessing, high + guessing
    by_group = dict(held.by_group)
    by_group[TensorGroup.OTHER] = by_group.get(TensorGroup.OTHER, 0) + buffers
    return WeightPlan(
        by_group=tuple(by_group.items()),
        loaded=Bounds(low=min(low, best), best=best, high=high),
        offloaded_bytes=held.moved_bytes,
        transient_bytes=head_bytes(model, flags) if model.head_built_before_tying else 0,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Held:
    """Bytes that no batch changes: all of one device, its quantised part, what moves to the host, lost to rounding."""

    raw_bytes: int
    quantised_bytes: int
    moved_bytes: int
    lost_bytes: int
    by_group: tuple[tuple[TensorGroup, int], ...]


@lru_cache(maxsize=_REMEMBERED)
def _remembered(model: ModelFacts, weighing: tuple[Any, ...], whole: bool, towers_first: bool) -> _Held:  # noqa: FBT001
    flags = Flags(**dict(zip(_WEIGHING, weighing, strict=True)))
    return _held(model, flags, whole=whole, towers_first=towers_first)


def _held(model: ModelFacts, flags: Flags, *, whole: bool, towers_first: bool) -> _Held:
    tensors, sizes = _laid_out(model, replace(flags, cpu_offload_gb=None))
    moved, lost = _offload(model, flags, tensors, sizes, whole=whole, towers_first=towers_first)
    by_group: dict[TensorGroup, int] = {}
    for tensor, size in zip(tensors, sizes, strict=True):
        by_group[tensor.group] = by_group.get(tensor.group, 0) + size
    for group in LINEAR_GROUPS - by_group.keys():  # bytes that were read and that no layer's shape explains stay whole
        by_group[group] = dict(model.measured_bytes).get(group, 0)
    if own_mtp(model, flags) is not None:
        by_group[TensorGroup.OTHER] = by_group.get(TensorGroup.OTHER, 0) + model.mtp_bytes // flags.tp
    return _Held(
        raw_bytes=sum(by_group.values()),
        quantised_bytes=sum(size for group, size in by_group.items() if group in model.quant.groups),
        moved_bytes=moved,
        lost_bytes=lost,
        by_group=tuple(by_group.items()),
    )


@lru_cache(maxsize=_REMEMBERED // 8)
def _laid_out(model: ModelFacts, flags: Flags) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """The tensors of the fullest device and their bytes; they do not depend on what is offloaded."""
    tensors = tuple(device_tensors(model, flags))
    return tensors, tuple(_bytes(model, tensor) for tensor in tensors)


@lru_cache(maxsize=_REMEMBERED // 8)
def stored_bytes(model: ModelFacts) -> int:
    """Size of all tensors of a checkpoint on disk, bytes; a stored copy of a tied head is not counted."""
    return sum(int(tensor.stored_params * _width(model, tensor.group)) for tensor in device_tensors(model, Flags()))


def head_bytes(model: ModelFacts, flags: Flags) -> int:
    """Bytes of the output head on one device, in the base width; the transient of models that tie it late."""
    return _padded_vocab(model.vocab, flags.tp) // flags.tp * model.hidden * model.quant.base_bytes_per_param


def tower_is_built(group: TensorGroup, tower: TowerFacts | None, flags: Flags) -> bool:
    """False when the flags keep vLLM from building an encoder."""
    if tower is None or flags.language_model_only:
        return False
    limits = dict(flags.limit_mm_per_prompt or ())
    return not all(limits.get(kind, 1) == 0 for kind in _MODALITIES[group])


def tower_share(tower: TowerFacts, flags: Flags) -> int:
    """Ranks that an encoder is split over; ``--mm-encoder-tp-mode data`` gives each the whole of it.

    Source: vllm/config/multimodal.py of 0.27.0, read 2026-11-22.
    """
    return flags.tp if tower.sharded and flags.mm_encoder_tp_mode != "data" else 1


def device_tensors(model: ModelFacts, flags: Flags) -> Iterator[Tensor]:
    """Every large tensor of the fullest device, decoder layers in order."""
    tp, hidden = flags.tp, model.hidden
    vocab = _padded_vocab(model.vocab, tp) // tp
    yield Tensor(group=TensorGroup.EMBEDDINGS, params=vocab * hidden, stored_params=model.vocab * hidden)
    if not model.tied and flags.pp == 1:  # with stages the last one holds it, and the first one the embedding
        yield Tensor(group=TensorGroup.LM_HEAD, params=vocab * hidden, stored_params=model.vocab * hidden)
    if model.per_layer_hidden:
        width = model.layer_count * model.per_layer_hidden
        yield Tensor(group=TensorGroup.PER_LAYER_EMBEDDINGS, params=vocab * width, stored_params=model.vocab * width)
        yield Tensor(group=TensorGroup.OTHER, params=hidden * width, stored_params=hidden * width)
    for group, tower in ((TensorGroup.VISION, model.vision), (TensorGroup.AUDIO, model.audio)):
        if tower is not None and tower_is_built(group, tower, flags):
            share = tower_share(tower, flags)
            yield Tensor(group=group, params=tower.params // share, stored_params=tower.params)
    yield Tensor(group=TensorGroup.OTHER, params=model.norm_params, stored_params=model.norm_params)
    index = 0
    for layer in stage_layers(model.layers, flags.pp):
        for _ in range(layer.count):
            yield from _layer_tensors(model, layer, flags, index)
            index += 1
    if (guessing := own_mtp(model, flags)) is not None and not model.mtp_bytes:
        yield from _guessing_tensors(model, guessing, flags, index)
        yield Tensor(group=TensorGroup.OTHER, params=2 * hidden * hidden, stored_params=2 * hidden * hidden)


def _leaves_guessing_wide(model: ModelFacts) -> bool:
    return model.quant.bytes_per_param < 1 and not model.measured_bytes


def _narrower(model: ModelFacts, flags: Flags) -> int:
    """Bytes that a guessing layer counted in 16 bits would save if its publisher had quantised it after all."""
    guessing = own_mtp(model, flags)
    if guessing is None or not _leaves_guessing_wide(model):
        return 0
    whole = sum(tensor.params for tensor in _layer_tensors(model, guessing, flags, 0))
    return int(whole * (model.quant.base_bytes_per_param - model.quant.bytes_per_param))


def _guessing_beside_printed(model: ModelFacts, flags: Flags) -> int:
    """Weights that were printed were printed without guessing tokens; the layer that does stays in 16 bits.

    Qwen 3.8 27B took 51.1 GiB and 51.89 with it, unsloth's NVFP4 of it 21.34 (0.27.1) and 22.13 (0.25.1).
    """
    guessing = own_mtp(model, flags)
    if guessing is None:
        return 0
    own = sum(tensor.params for tensor in _layer_tensors(model, guessing, flags, 0))
    return int((own + 2 * model.hidden * model.hidden) * model.quant.base_bytes_per_param)


def _guessing_tensors(model: ModelFacts, guessing: LayerGroup, flags: Flags, index: int) -> Iterator[Tensor]:
    """The guessing layer, which publishers of four-bit checkpoints leave in 16 bits.

    vLLM then chooses its "Unquantized MoE backend" for it: 1.57 GiB for Qwen 3.6 35B-A3B as NVFP4 (0.20.2).
    """
    wide = _leaves_guessing_wide(model)
    for tensor in _layer_tensors(model, guessing, flags, index):
        yield replace(tensor, group=TensorGroup.OTHER) if wide else tensor


def _layer_tensors(model: ModelFacts, layer: LayerGroup, flags: Flags, index: int) -> Iterator[Tensor]:
    hidden, tp = model.hidden, flags.tp

    def tensor(group: TensorGroup, params: int, stored: int) -> Tensor:
        return Tensor(group=group, params=params, stored_params=stored, layer=index)

    if layer.kind is AttentionKind.RECURRENT and layer.recurrent is not None:
        whole = layer.recurrent.weight_params
        yield tensor(TensorGroup.RECURRENT, whole // tp, whole)
    elif layer.attention_params is not None:
        split = layer.attention_params - layer.replicated_params
        yield tensor(TensorGroup.ATTENTION, split // tp + layer.replicated_params, layer.attention_params)
    else:
        query = layer.heads * layer.head_dim
        wide = query * (2 if layer.gated_output else 1)
        cached = layer.kv_heads * layer.head_dim
        local = max(1, layer.kv_heads // tp) * layer.head_dim
        stored = hidden * (wide + cached * (1 if layer.keys_are_values else 2))
        yield tensor(TensorGroup.ATTENTION, hidden * (wide // tp + 2 * local), stored)
        yield tensor(TensorGroup.ATTENTION, hidden * query // tp, hidden * query)
    if layer.intermediate:
        yield tensor(TensorGroup.MLP, 2 * hidden * layer.intermediate // tp, 2 * hidden * layer.intermediate)
        yield tensor(TensorGroup.MLP, hidden * layer.intermediate // tp, hidden * layer.intermediate)
    if layer.experts:
        one = layer.experts * hidden * layer.expert_intermediate
        held = _expert_params(model, layer, tp * (flags.data_parallel_size or 1))
        yield tensor(TensorGroup.EXPERTS, 2 * held, 2 * one)
        yield tensor(TensorGroup.EXPERTS, held, one)
    if layer.shared_intermediate:
        one = 3 * hidden * layer.shared_intermediate
        yield tensor(TensorGroup.MLP, one // tp, one)
    if model.per_layer_hidden:
        one = 2 * hidden * model.per_layer_hidden
        yield tensor(TensorGroup.PER_LAYER_PROJECTIONS, one, one)


def _expert_params(model: ModelFacts, layer: LayerGroup, ranks: int) -> int:
    """Parameters of one matrix of all experts on one device, padded where they are kept in four bits.

    Data-parallel replicas share the experts: each holds its part, with expert parallelism or without.

    Source: vllm/model_executor/layers/quantization/mxfp4.py, the Marlin backend, read 2026-11-21;
    FusedMoEParallelConfig.make in vllm/model_executor/layers/fused_moe/config.py of 0.14.1, read 2026-11-26.
    """
    if layer.expert_padding is None or TensorGroup.EXPERTS not in model.quant.groups:
        return layer.experts * model.hidden * layer.expert_intermediate // ranks
    rows, columns = layer.expert_padding
    return layer.experts * _up(model.hidden, rows) * _up(layer.expert_intermediate // ranks, columns)


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _bytes(model: ModelFacts, tensor: Tensor) -> int:
    """Bytes of a tensor on the device: measured ones by its share of its group, others by its storage.

    A checkpoint whose names do not tell recurrent layers from attention has them counted there.
    """
    groups = dict(model.measured_bytes)
    if tensor.group is TensorGroup.RECURRENT and tensor.group not in groups and TensorGroup.ATTENTION in groups:
        return 0
    measured = groups.get(tensor.group)
    if measured is not None and (stored := _stored_params(model, tensor.group)):
        return int(measured * tensor.params / stored)
    return int(tensor.params * _width(model, tensor.group))


def _width(model: ModelFacts, group: TensorGroup) -> float:
    if group not in model.quant.groups:
        return model.quant.base_bytes_per_param
    return dict(model.quant.widths).get(group, model.quant.bytes_per_param)


def _stored_params(model: ModelFacts, group: TensorGroup) -> int:
    return sum(tensor.stored_params for tensor in device_tensors(model, Flags()) if tensor.group is group)


def _padded_vocab(vocab: int, tp: int) -> int:
    """VLLM pads the vocabulary to a multiple of 64, then of the shards (``vocab_parallel_embedding.py``)."""
    padded = -(-vocab // 64) * 64
    return -(-padded // tp) * tp


def _batch_buffers(model: ModelFacts, batched_tokens: int) -> int:
    """Buffers of one batch that are there from the load on.

    Source: vllm/model_executor/models/gemma4.py; qwen3_vl.py 1408-1416 of 0.17.1 (``deepstack_input_embeds``).
    """
    per_token = model.layer_count * model.per_layer_hidden + model.deepstack_levels * model.hidden
    return batched_tokens * per_token * 2


def _rounding(size: int, *, whole: bool) -> int:
    """Bytes the caching allocator loses on one block.

    Large blocks come in 2 MiB steps, and the rest of a step is given back only if it is over 1 MiB and, from 0.21, the
    block is under 20 MiB.

    Source: c10/cuda/CUDACachingAllocator round_size and should_split; gpu_worker.py ``_scoped_allocator_max_split``.
    """
    if size < 10 * MIB:
        return 0
    lost = -size % (2 * MIB)
    return lost if lost <= MIB or (whole and size + lost >= 20 * MIB) else 0


def _offload(
    model: ModelFacts,
    flags: Flags,
    tensors: Sequence[Tensor],
    sizes: Sequence[int],
    *,
    whole: bool,
    towers_first: bool,
) -> tuple[int, int]:
    """Bytes moved to the host, and bytes lost to rounding by what stays.

    Parameters move one by one, from layer 0 on (towers first in versions that wrap them), until the limit is reached;
    with ``--cpu-offload-params`` only those that have this segment in their name.

    Source: vllm/model_executor/offloader/uva.py of commit 00593fa7, read 2026-11-26.
    """
    limit = int((flags.cpu_offload_gb or 0) * 2**30)
    towers = (TensorGroup.VISION, TensorGroup.AUDIO)
    order = sorted(
        range(len(tensors)),
        key=lambda at: (-1 if tensors[at].group in towers else tensors[at].layer or 0, at),
    )
    moved = loss = 0
    for at in order:
        movable = tensors[at].layer is not None or (towers_first and tensors[at].group in towers)
        movable = movable and (flags.cpu_offload_params is None or tensors[at].group is TensorGroup.EXPERTS)
        if not movable or moved >= limit:
            loss += _stored_rounding(model, tensors[at], sizes[at], whole=whole)
        elif tensors[at].group in towers:
            moved += min(sizes[at], limit - moved)  # a tower is many small parameters
        else:
            moved += sizes[at]
    return moved, loss


def _stored_rounding(model: ModelFacts, tensor: Tensor, size: int, *, whole: bool) -> int:
    if tensor.layer is None and tensor.group not in {TensorGroup.EMBEDDINGS, TensorGroup.LM_HEAD}:
        return 0
    width = _width(model, tensor.group)
    main = tensor.params // 2 if tensor.group in model.quant.groups and width < 1 else size
    return _rounding(main, whole=whole)
