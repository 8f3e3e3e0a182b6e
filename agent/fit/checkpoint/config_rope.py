"""The tables of cosines and sines that vLLM builds for rotary embeddings, from what config.json says of them."""

from __future__ import annotations

from typing import Final

from agent.fit.checkpoint.config_reader import ConfigReader
from agent.fit.model_and_hardware import AttentionKind, LayerGroup

_LAYER_TYPES: Final = {AttentionKind.FULL: "full_attention", AttentionKind.SLIDING: "sliding_attention"}


def rope_cache_bytes(text: ConfigReader, layers: tuple[LayerGroup, ...], max_position: int, base: int) -> int:
    """Bytes of all tables; each rank holds them whole.

    One table per head size and rope: 384 MiB for Gemma 4's 262,144 x (256 + 512), 576 MiB for Gemma 3's 4B and 12B,
    whose full layers are stretched eightfold and whose sliding layers have a rope of their own.

    Args:
        text: The language model's level of the config.
        layers: The decoder's layers.
        max_position: Longest context, tokens.
        base: Bytes of one element.

    Raises:
        InputRejected: A stretch that is no number of at least 1.

    Source: vllm/model_executor/layers/rotary_embedding: LinearScalingRotaryEmbedding holds max_position x factor rows,
    get_rope keeps one table per arguments; Gemma3Attention asks for two. Read 2026-11-21; 0.19.0 printed 8.58, 23.31
    and 51.45 GiB for the 4B, 12B and 27B.
    """
    tables = set()
    for group in layers:
        if group.kind not in _LAYER_TYPES:
            continue
        rope, stretch = _rope_of(text, group.kind)
        tables.add((group.head_dim, rope, stretch))
    return sum(int(max_position * stretch) * head_dim * base for head_dim, _, stretch in tables)


def _rope_of(text: ConfigReader, kind: AttentionKind) -> tuple[str, float]:
    """Name of a kind's rope, and by how much its table is stretched."""
    nested = text.section("rope_parameters")
    own = nested.section(_LAYER_TYPES[kind]) if nested is not None and _is_nested(nested) else None
    if own is not None:
        return f"{own.number('rope_theta', 0.0)}", _stretch(own)
    if kind is AttentionKind.SLIDING and text.values.get("rope_local_base_freq") is not None:
        return "local", 1.0
    common = nested or text.section("rope_scaling")
    return "common", 1.0 if common is None else _stretch(common)


def _is_nested(parameters: ConfigReader) -> bool:
    return any(isinstance(parameters.values.get(name), dict) for name in _LAYER_TYPES.values())


def _stretch(rope: ConfigReader) -> float:
    """Only linear scaling makes the table longer than the published positions (YaRN's are counted in them)."""
    if rope.text("rope_type", rope.text("type")) != "linear":
        return 1.0
    factor = rope.number("factor", 1.0)
    if not 1 <= factor <= 1024:
        raise rope.refuse(f"'factor' is {factor}, want 1 to 1024")
    return factor
