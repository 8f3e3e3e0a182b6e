"""KV caches of the TurboQuant types: bytes of a token, layers that stay in 16 bits, and what their kernels set aside.

Source: vllm/model_executor/layers/quantization/turboquant/config.py and vllm/v1/attention/backends/turboquant_attn.py
(_reserve_workspace) of commit 0135d081, read 2026-11-26.
"""

from __future__ import annotations

from agent.fit.bounds import GIB, NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, AttentionKind, LayerGroup, ModelFacts
from agent.fit.version_rules import VersionRules

_BITS = {
    "turboquant_k8v4": (8, 4),
    "turboquant_4bit_nc": (4, 4),
    "turboquant_k3v4_nc": (3, 4),
    "turboquant_3bit_nc": (3, 3),
}
"""Bits of an element of a key and of a value, by ``--kv-cache-dtype``."""

PLAIN_ENDS = 4
"""Layers of a dense model that stay in 16 bits, the first and the last two; a hybrid's all are packed."""

_READ_FROM = (0, 21)
_SPLITS = 32
_CONTINUED = 128
"""Largest batch that continues a prompt without unpacking the whole of what is cached."""


def is_counted(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> bool:
    """Whether this type is known for this model: on CUDA, all layers full or recurrent, one stage, no draft."""
    if accelerator.kind is not AcceleratorKind.CUDA:
        return False
    kinds = {layer.kind for layer in model.layers if layer.owns_kv}
    alone = flags.pp == 1 and flags.speculative_config is None and rules.numbers >= _READ_FROM
    return flags.kv_cache_dtype in _BITS and alone and kinds <= {AttentionKind.FULL, AttentionKind.RECURRENT}


def slot_bytes(layer: LayerGroup, flags: Flags) -> int | None:
    """Bytes of one head's key and value of one token, each with its scales, made even; None for other types."""
    if flags.kv_cache_dtype not in _BITS:
        return None
    key, value = _BITS[flags.kv_cache_dtype]
    packed = layer.head_dim if key == 8 else -(-layer.head_dim * key // 8) + 2
    packed += -(-layer.head_dim * value // 8) + 4
    return packed + packed % 2


def workspace(model: ModelFacts, flags: Flags, *, sequences: int, batch: int, length: int) -> Bounds:
    """What is set aside beside the pool: partial sums of a decode, or one layer's whole cache unpacked."""
    full = [layer for layer in model.layers if layer.kind is AttentionKind.FULL]
    if flags.kv_cache_dtype not in _BITS or not full:
        return NOTHING
    widest = max(full, key=lambda layer: layer.kv_heads * layer.head_dim)
    size = sequences * max(1, widest.heads // flags.tp) * (_SPLITS + 1) * (widest.head_dim + 1) * 4
    if batch > _CONTINUED:
        size = max(size, 2 * max(1, widest.kv_heads // flags.tp) * length * widest.head_dim * 2)
    return Bounds(low=0, best=size, high=size + GIB // 4)
