"""Which part of a model a tensor belongs to, by its name alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.fit.checkpoint.safetensors import StoredTensor
from agent.fit.model_and_hardware import TensorGroup

_BY_SEGMENT: Final = {
    "vision_tower": TensorGroup.VISION,
    "vision_model": TensorGroup.VISION,
    "vision_encoder": TensorGroup.VISION,
    "vision_embedder": TensorGroup.VISION,
    "embed_vision": TensorGroup.VISION,
    "visual": TensorGroup.VISION,
    "vision": TensorGroup.VISION,
    "vpm": TensorGroup.VISION,
    "perception": TensorGroup.VISION,
    "visual_tokenizer": TensorGroup.VISION,
    "image_embed": TensorGroup.VISION,
    "multi_modal_projector": TensorGroup.VISION,
    "mm_projector": TensorGroup.VISION,
    "image_newline": TensorGroup.VISION,
    "apm": TensorGroup.AUDIO,
    "whisper_encoder": TensorGroup.AUDIO,
    "audio_tower": TensorGroup.AUDIO,
    "audio_model": TensorGroup.AUDIO,
    "audio_encoder": TensorGroup.AUDIO,
    "audio_embedder": TensorGroup.AUDIO,
    "embed_audio": TensorGroup.AUDIO,
    "embed_tokens_per_layer": TensorGroup.PER_LAYER_EMBEDDINGS,
    "lm_head": TensorGroup.LM_HEAD,
    "embed_out": TensorGroup.LM_HEAD,
    "shared_head": TensorGroup.LM_HEAD,
    "embed_tokens": TensorGroup.EMBEDDINGS,
    "wte": TensorGroup.EMBEDDINGS,
    "word_embeddings": TensorGroup.EMBEDDINGS,
    "tok_embeddings": TensorGroup.EMBEDDINGS,
    "embed_in": TensorGroup.EMBEDDINGS,
    "per_layer_input_gate": TensorGroup.PER_LAYER_PROJECTIONS,
    "per_layer_projection": TensorGroup.PER_LAYER_PROJECTIONS,
    "per_layer_model_projection": TensorGroup.PER_LAYER_PROJECTIONS,
}
_BY_BLOCK: Final = {
    "experts": TensorGroup.EXPERTS,
    "self_attn": TensorGroup.ATTENTION,
    "attention": TensorGroup.ATTENTION,
    "attn": TensorGroup.ATTENTION,
    "linear_attn": TensorGroup.RECURRENT,
    "self_attention": TensorGroup.ATTENTION,
    "mixer": TensorGroup.ATTENTION,
    "mamba": TensorGroup.RECURRENT,
    "conv": TensorGroup.RECURRENT,
    "mlp": TensorGroup.MLP,
    "feed_forward": TensorGroup.MLP,
    "ffn": TensorGroup.MLP,
    "block_sparse_moe": TensorGroup.MLP,
    "shared_mlp": TensorGroup.MLP,
}
_IN_MIXER: Final = {
    **dict.fromkeys(("A_log", "D", "conv1d", "dt_bias", "in_proj", "out_proj"), TensorGroup.RECURRENT),
    **dict.fromkeys(("down_proj", "shared_experts", "up_proj"), TensorGroup.MLP),
}
"""Nemotron H calls every part of a layer its mixer."""

_STACKS: Final = frozenset({"layers", "layer", "h", "blocks", "block"})
_SHARED: Final = frozenset({TensorGroup.EMBEDDINGS, TensorGroup.LM_HEAD})
_BESIDE: Final = frozenset({TensorGroup.VISION, TensorGroup.AUDIO})
_REPLICATED: Final = frozenset({"gate", "router", "shared_expert_gate", "layer_scalar"})


def group_of(name: str) -> TensorGroup:
    """The group of one tensor.

    Towers and their projectors win over everything inside them; norms, routers and scalars are OTHER wherever
    they stand, because vLLM replicates them and never quantises them. An expert that every token takes
    (``shared_expert``) is counted with the dense feed-forward, whose sharding it has.

    Args:
        name: As stored, "model.language_model.layers.3.mlp.up_proj.weight_packed".

    Returns:
        OTHER for a name that says nothing.
    """
    segments = name.split(".")
    outer = [_BY_SEGMENT[segment] for segment in segments if segment in _BY_SEGMENT]
    if outer:
        return outer[0]  # the outermost name decides: "vision_tower.layers.0.mlp" is vision
    if any(segment in _REPLICATED or _is_norm(segment) for segment in segments):
        return TensorGroup.OTHER
    blocks = [_BY_BLOCK[segment] for segment in segments if segment in _BY_BLOCK]
    if TensorGroup.EXPERTS in blocks:
        return TensorGroup.EXPERTS
    if "mixer" in segments:
        return next((_IN_MIXER[segment] for segment in segments if segment in _IN_MIXER), TensorGroup.ATTENTION)
    return blocks[0] if blocks else TensorGroup.OTHER


def _place(name: str) -> tuple[str, int] | None:
    """Stack and number of a layer outside towers that are known by name; None for a name that does not tell."""
    segments = name.split(".")
    if group_of(name) in _BESIDE or "mtp" in segments:
        return None
    for at, (stack, number) in enumerate(pairwise(segments)):
        if stack in _STACKS and number.isascii() and number.isdigit() and len(number) <= 6:
            return ".".join(segments[: at + 1]), int(number)
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorCount:
    """Exact sizes of a checkpoint.

    Attributes:
        by_group: Bytes on disk per tensor group, packed values and their scales together.
        by_dtype: Bytes per stored dtype ("BF16", "I32" ...).
        narrow: Groups that hold weights narrower than 16 bits: these are the quantised ones.
        layers: Decoder layers of which there is a tensor.
        guessing_bytes: Layers that guess tokens, loaded only when asked for and in no group; their copies of embedding
            and output head, which vLLM shares with the decoder, are not counted.
        total_bytes: All of it.
        total_tensors: How many.
        unnamed_bytes: Layers beside the decoder whose name tells no tower, counted with the one for images.
    """

    by_group: Mapping[TensorGroup, int]
    by_dtype: Mapping[str, int]
    narrow: frozenset[TensorGroup]
    layers: frozenset[int]
    guessing_bytes: int
    total_bytes: int
    total_tensors: int
    unnamed_bytes: int = 0


def count_tensors(tensors: Iterable[StoredTensor], *, decoder_layers: int, guessing_layers: int = 0) -> TensorCount:
    """Add up tensors by group and by dtype.

    Args:
        tensors: Of all shards together.
        decoder_layers: What the config says.
        guessing_layers: How many of its layers after those guess tokens (DeepSeek, GLM), as the config says; any other
            layer is loaded.

    Returns:
        Their exact sizes. Layers beside the decoder's belong to a tower, whatever its name.
    """
    by_group: Counter[TensorGroup] = Counter()
    by_dtype: Counter[str] = Counter()
    narrow: set[TensorGroup] = set()
    layers: set[int] = set()
    guessing = unnamed = 0
    placed = [(tensor, _place(tensor.name)) for tensor in tensors]
    decoder = _decoder_stack(placed, decoder_layers)
    for tensor, place in placed:
        stack, layer = place or (decoder, -1)
        group = group_of(tensor.name) if stack == decoder else TensorGroup.VISION
        by_dtype[tensor.dtype] += tensor.n_bytes
        numbered_on = stack == decoder and decoder_layers <= layer < decoder_layers + guessing_layers
        if "mtp" in tensor.name.split(".") or numbered_on:
            guessing += 0 if group in _SHARED else tensor.n_bytes
            continue
        by_group[group] += tensor.n_bytes
        unnamed += tensor.n_bytes if stack != decoder else 0
        if _is_packed(tensor):
            narrow.add(group)
        if place is not None and stack == decoder:
            layers.add(layer)
    return TensorCount(
        by_group=dict(sorted(by_group.items())),
        by_dtype=dict(sorted(by_dtype.items())),
        narrow=frozenset(narrow),
        layers=frozenset(layers),
        guessing_bytes=guessing,
        total_bytes=sum(by_dtype.values()),
        total_tensors=len(placed),
        unnamed_bytes=unnamed,
    )


def _decoder_stack(placed: Iterable[tuple[StoredTensor, tuple[str, int] | None]], decoder_layers: int) -> str:
    """The stack with all of the decoder's layers, without others if there is a choice, the largest of several."""
    held: Counter[str] = Counter()
    numbers: dict[str, set[int]] = {}
    for tensor, place in placed:
        if place is not None:
            held[place[0]] += tensor.n_bytes
            numbers.setdefault(place[0], set()).add(place[1])
    wanted = set(range(decoder_layers))
    return max(held, key=lambda at: (wanted <= numbers[at], numbers[at] <= wanted, held[at]), default="")


def _is_packed(tensor: StoredTensor) -> bool:
    if len(tensor.shape) < 2 or tensor.name.endswith(("_scale", ".scales", "_shape", ".g_idx", "zeros", "_zero_point")):
        return False
    return tensor.dtype not in {"BF16", "F16", "F32", "F64"}


def _is_norm(segment: str) -> bool:
    return segment.endswith(("norm", "norm1", "norm2", "layernorm")) or segment.startswith("ln_")
