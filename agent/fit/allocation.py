"""Which tensor or buffer a failed allocation was: 2.62 GiB and a model in, a name with its arithmetic out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agent.errors import InputRejected
from agent.fit.bounds import MIB, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import LayerGroup, ModelFacts, TensorGroup

_UNITS: Final = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_PRINTED: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([KMGT]?i?B|bytes)")
_SEGMENTS: Final = (2 * MIB, 20 * MIB)
_POOLED: Final = 10 * MIB
"""Blocks under this size come out of 2 MiB and 20 MiB segments, so their printed size names nothing."""


class AllocationKind(StrEnum):
    """What a failed allocation was for."""

    OUTPUT_HEAD = "output_head"
    EMBEDDING = "embedding"
    PER_LAYER_EMBEDDING = "per_layer_embedding"
    ATTENTION_WEIGHT = "attention_weight"
    MLP_WEIGHT = "mlp_weight"
    EXPERT_WEIGHT = "expert_weight"
    POSITION_CACHE = "position_cache"
    PER_LAYER_BUFFER = "per_layer_buffer"
    MLP_ACTIVATION = "mlp_activation"
    LOGITS = "logits"
    ALLOCATOR_SEGMENT = "allocator_segment"


class Moment(StrEnum):
    """When vLLM makes it."""

    LOADING = "loading"
    PROFILING = "profiling"
    ANY = "any"


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedAllocation:
    """One thing that has the failed size.

    Attributes:
        kind: What it is.
        moment: When it is made.
        n_bytes: Its exact size on one device, before the allocator rounds it.
        formula: How the size comes about, "262144 x 5376 x 2 B".
        why: What it is for, in one sentence.
        helped_by: Flags that can make room for it, best first; all others cannot.
    """

    kind: AllocationKind
    moment: Moment
    n_bytes: int
    formula: str
    why: str
    helped_by: tuple[str, ...]


_LOAD_HELP: Final = ("language_model_only", "cpu_offload_gb", "tensor_parallel_size")
_PROFILE_HELP: Final = ("max_num_seqs", "max_num_batched_tokens")


def printed_size(text: str) -> Bounds:
    """Read a size as PyTorch prints it: rounded to the digits shown.

    Args:
        text: "2.62 GiB", or a line that holds "Tried to allocate 2.62 GiB".

    Returns:
        Every size in bytes that prints like this.

    Raises:
        InputRejected: There is no size in the text.
    """
    match = _PRINTED.search(text.partition("Tried to allocate")[2] or text)
    if match is None or match[2] not in {*_UNITS, "bytes"}:
        raise InputRejected(f"no size was read from {text[:120]!r}", why="want a number and a unit", hint="2.62 GiB")
    unit = _UNITS.get(match[2], 1)
    digits = len(match[1].partition(".")[2])
    best = float(match[1]) * unit
    half = unit / 10**digits / 2 if unit > 1 else 0.0
    return Bounds(low=max(0, int(best - half)), best=int(best), high=int(best + half))


def name_allocation(
    size: Bounds,
    model: ModelFacts,
    *,
    flags: Flags | None = None,
    batched_tokens: int | None = None,
    num_seqs: int | None = None,
    moment: Moment = Moment.ANY,
) -> tuple[NamedAllocation, ...]:
    """Find what a failed allocation of this size was for.

    A request of 10 MiB and more is rounded up to 2 MiB before it is printed (PyTorch's CUDACachingAllocator,
    ``get_allocation_size``); each candidate is rounded the same way.

    Args:
        size: The failed size; see :func:`printed_size`.
        model: Facts of the model that was loading.
        flags: The server's flags; sizes are per device under its tensor parallelism.
        batched_tokens: Tokens of one batch, for buffers of the profile run; None leaves these out.
        num_seqs: Sequences of one batch, likewise.
        moment: When it failed, if known; what is made at another time is left out.

    Returns:
        Everything of that size, likeliest first; () if nothing of this model has it.
    """
    found = [
        candidate
        for candidate in _candidates(model, flags or Flags(), batched_tokens, num_seqs)
        if size.low <= _rounded(candidate.n_bytes) <= size.high and moment in {Moment.ANY, candidate.moment}
    ]
    unique: dict[tuple[AllocationKind, int], NamedAllocation] = {}
    for candidate in found:
        unique.setdefault((candidate.kind, candidate.n_bytes), candidate)
    pooled = any(size.low <= segment <= size.high for segment in _SEGMENTS)
    return (*unique.values(), _segment(size)) if pooled else tuple(unique.values())


def _rounded(n_bytes: int) -> int:
    return n_bytes if n_bytes < _POOLED else -(-n_bytes // (2 * MIB)) * 2 * MIB


def _segment(size: Bounds) -> NamedAllocation:
    return NamedAllocation(
        kind=AllocationKind.ALLOCATOR_SEGMENT,
        moment=Moment.ANY,
        n_bytes=size.best,
        formula=f"{size.best / MIB:g} MiB segment",
        why="PyTorch serves blocks under 10 MiB from segments of this size: it does not tell what was wanted",
        helped_by=(),
    )


def _candidates(model: ModelFacts, flags: Flags, batched: int | None, seqs: int | None) -> Iterator[NamedAllocation]:
    """Likeliest first: what is made while the memory is fullest stands before what is made on an empty device."""
    yield from _vocabulary(model, flags.tp)
    for layer in model.layers:
        yield from _layer_weights(model, layer, flags.tp)
    yield from _buffers(model, flags.tp, batched, seqs)


def _vocabulary(model: ModelFacts, tp: int) -> Iterator[NamedAllocation]:
    """Rows padded to 64 and to the shards, as ``vocab_parallel_embedding.py`` does."""
    base = model.quant.base_bytes_per_param
    rows = -(-(-(-model.vocab // 64) * 64) // tp)
    formula = f"{model.vocab} x {model.hidden} x {base} B" + (f" / {tp}" if tp > 1 else "")
    whole = rows * model.hidden * base
    if model.head_built_before_tying or not model.tied:
        why = (
            "the output head, built while loading and dropped when it is tied to the embedding: a transient"
            if model.head_built_before_tying and model.tied
            else "the output head"
        )
        yield NamedAllocation(
            kind=AllocationKind.OUTPUT_HEAD,
            moment=Moment.LOADING,
            n_bytes=whole,
            formula=formula,
            why=why,
            helped_by=_LOAD_HELP,
        )
    yield NamedAllocation(
        kind=AllocationKind.EMBEDDING,
        moment=Moment.LOADING,
        n_bytes=whole,
        formula=formula,
        why="the embedding table, the first large tensor of the load",
        helped_by=("tensor_parallel_size",),
    )
    if model.per_layer_hidden:
        width = model.layer_count * model.per_layer_hidden
        yield NamedAllocation(
            kind=AllocationKind.PER_LAYER_EMBEDDING,
            moment=Moment.LOADING,
            n_bytes=rows * width * base,
            formula=f"{model.vocab} x {model.layer_count} x {model.per_layer_hidden} x {base} B",
            why="the embedding table of all layers",
            helped_by=("tensor_parallel_size",),
        )


def _layer_weights(model: ModelFacts, layer: LayerGroup, tp: int) -> Iterator[NamedAllocation]:
    hidden, kv = model.hidden, max(1, layer.kv_heads // tp) * layer.head_dim
    query = layer.heads * layer.head_dim
    wide = query * (2 if layer.gated_output else 1) // tp
    named = [
        (AllocationKind.ATTENTION_WEIGHT, TensorGroup.ATTENTION, "qkv_proj", hidden, wide + 2 * kv),
        (AllocationKind.ATTENTION_WEIGHT, TensorGroup.ATTENTION, "o_proj", hidden, query // tp),
        (AllocationKind.MLP_WEIGHT, TensorGroup.MLP, "gate_up_proj", hidden, 2 * layer.intermediate // tp),
        (AllocationKind.MLP_WEIGHT, TensorGroup.MLP, "down_proj", hidden, layer.intermediate // tp),
    ]
    wide_experts, experts = layer.experts * layer.expert_intermediate // tp, TensorGroup.EXPERTS
    named += [
        (AllocationKind.EXPERT_WEIGHT, experts, f"{layer.experts} experts' gate_up_proj", hidden, 2 * wide_experts),
        (AllocationKind.EXPERT_WEIGHT, experts, f"{layer.experts} experts' down_proj", hidden, wide_experts),
    ]
    for kind, group, name, rows, columns in named:
        if not columns or (layer.attention_params is not None and group is TensorGroup.ATTENTION):
            continue
        per_param, width = _width(model, group)
        yield NamedAllocation(
            kind=kind,
            moment=Moment.LOADING,
            n_bytes=int(rows * columns * per_param),
            formula=f"{rows} x {columns} x {width}",
            why=f"{name} of one layer while loading",
            helped_by=_LOAD_HELP,
        )


def _width(model: ModelFacts, group: TensorGroup) -> tuple[float, str]:
    """Bytes of a weight's values alone: scales are tensors of their own."""
    if group not in model.quant.groups:
        return model.quant.base_bytes_per_param, f"{model.quant.base_bytes_per_param} B"
    return (0.5, "4 bit") if model.quant.bytes_per_param < 1 else (1.0, "1 B")


def _buffers(model: ModelFacts, tp: int, batched: int | None, seqs: int | None) -> Iterator[NamedAllocation]:
    base = model.quant.base_bytes_per_param
    for head_dim in sorted({layer.head_dim for layer in model.layers if layer.head_dim}):
        yield NamedAllocation(
            kind=AllocationKind.POSITION_CACHE,
            moment=Moment.LOADING,
            n_bytes=model.max_position * head_dim * base,
            formula=f"{model.max_position} x {head_dim} x {base} B",
            why="cosines and sines for every position",
            helped_by=_LOAD_HELP,
        )
    if batched is not None:
        yield from _batch_buffers(model, tp, batched)
    if seqs is not None:
        for width in (4, base):
            yield NamedAllocation(
                kind=AllocationKind.LOGITS,
                moment=Moment.PROFILING,
                n_bytes=seqs * model.vocab * width,
                formula=f"{seqs} x {model.vocab} x {width} B",
                why="one row of scores per sequence while the sampler is warmed up",
                helped_by=("max_num_seqs",),
            )


def _batch_buffers(model: ModelFacts, tp: int, batched: int) -> Iterator[NamedAllocation]:
    base = model.quant.base_bytes_per_param
    if model.per_layer_hidden:
        yield NamedAllocation(
            kind=AllocationKind.PER_LAYER_BUFFER,
            moment=Moment.LOADING,
            n_bytes=batched * model.layer_count * model.per_layer_hidden * base,
            formula=f"{batched} x {model.layer_count} x {model.per_layer_hidden} x {base} B",
            why="the per-layer inputs of one batch",
            helped_by=("max_num_batched_tokens",),
        )
    for columns in sorted({2 * layer.intermediate // tp for layer in model.layers if layer.intermediate}):
        for width in (columns, columns // 2):
            yield NamedAllocation(
                kind=AllocationKind.MLP_ACTIVATION,
                moment=Moment.PROFILING,
                n_bytes=batched * width * base,
                formula=f"{batched} x {width} x {base} B",
                why="the feed-forward's inner values of one batch",
                helped_by=_PROFILE_HELP[::-1],
            )
