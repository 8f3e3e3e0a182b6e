"""LoRA adapters: what the buffers for them take beside the weights of a dense text model.

Source: vllm/lora/layers/{base_linear,column_parallel_linear,logits_processor,vocal_parallel_embedding}.py
(create_lora_weights) and cudagraph_specialize_lora in vllm/config/compilation.py of 0.14.1, read 2026-11-26.
"""

from __future__ import annotations

from agent.fit.bounds import NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import AttentionKind, LayerGroup, ModelFacts
from agent.fit.version_rules import VersionRules

_ASKED = "enable-lora"
_NAMES = frozenset({_ASKED, "max-loras", "max-lora-rank", "max-cpu-loras", "lora-modules"})
_DEFAULT_RANK, _DEFAULT_SLOTS = 16, 1
_WIDTH = 2
_PLAIN = frozenset({AttentionKind.FULL, AttentionKind.SLIDING})


def flags_counted(model: ModelFacts, flags: Flags, rules: VersionRules) -> frozenset[str]:
    """Names of the flags about adapters whose effect on memory is counted."""
    if not _is_asked(flags):
        return _NAMES
    plain = all(each.kind in _PLAIN and not each.experts and each.attention_params is None for each in model.layers)
    whole = all(_number(flags, name, 1) is not None for name in ("max-loras", "max-lora-rank"))
    text = model.vision is None and model.audio is None
    return _NAMES if plain and whole and text and not rules.is_v0 else frozenset()


def adapter_bytes(model: ModelFacts, flags: Flags) -> Bounds:
    """Buffers for all slots on one device: two factors beside every linear layer, at most the vocabulary's too.

    Qwen3 8B over two T4 printed 7.71 GiB with one slot of rank 16 (0.22.0), 7.64 are counted without; of a 4B 7, 15 and
    63 slots more took 79 MiB each, a quarter more than these factors (0.27.1; what the rest is was not read).
    """
    if not _is_asked(flags):
        return NOTHING
    rank = _number(flags, "max-lora-rank", _DEFAULT_RANK) or 0
    each = rank * (_number(flags, "max-loras", _DEFAULT_SLOTS) or 0) * _WIDTH
    linear = each * sum(layer.count * _edges(model, layer, flags.tp) for layer in model.layers)
    best = linear + linear // 4
    return Bounds(low=linear, best=best, high=best + 2 * each * (model.vocab + model.hidden))


def with_adapters(graphs: Bounds, flags: Flags) -> Bounds:
    """Graphs are captured with adapters and without: 102 and 70 took 1.28 GiB of a 4B, 51 and 35 take half (0.27.1)."""
    return Bounds(low=graphs.low, best=2 * graphs.best, high=2 * graphs.high) if _is_asked(flags) else graphs


def _edges(model: ModelFacts, layer: LayerGroup, tp: int) -> int:
    """Inputs and outputs of one layer's linear parts on one device, each as often as a factor spans it."""
    hidden, query = model.hidden, layer.heads * layer.head_dim // tp
    cached, inner = max(1, layer.kv_heads // tp) * layer.head_dim, layer.intermediate // tp
    return (3 * hidden + query + 2 * cached) + (query + hidden) + (2 * hidden + 2 * inner) + (inner + hidden)


def _is_asked(flags: Flags) -> bool:
    return flags.asks_for({_ASKED})


def _number(flags: Flags, name: str, default: int) -> int | None:
    """A flag's whole number; None where it is none."""
    text = flags.untyped(name)
    if text is None:
        return default
    return int(text) if text.isdecimal() else None
