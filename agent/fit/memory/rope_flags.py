"""Flags that give a model other positions: another length of context, and a longer table of cosines and sines.

Source: vllm/config/model.py (hf_overrides, _apply_dict_overrides, _get_and_verify_max_len) and model_executor/layers/
rotary_embedding/ (yarn_scaling_rope.py: positions x factor) of 0.33.0, vllm/engine/arg_utils.py (rope_scaling) of 0.9.2
to 0.11.0, which 0.12.0 has no more, read 2026-11-26.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import ModelFacts
from agent.fit.version_rules import VersionRules

_SCALING = ("rope_scaling", "rope_parameters")
_KEYS = frozenset({*_SCALING, "rope_theta", "max_position_embeddings"})
_OLD = frozenset({"rope-scaling", "rope-theta"})
_OVERRIDES = "hf-overrides"
_OLD_UNTIL = (0, 11, 0)
_MULTIPLIES = frozenset({"linear", "dynamic"})
_UNSTRETCHED = frozenset({
    "llama-2", "llama-3.0", "llama-3", "mistral", "qwen1.5", "qwen2.5", "qwen3", "qwen3-2507", "qwen3.5",
})  # fmt: skip
"""Families whose own config multiplies no positions: others may multiply what is asked for again, or ignore it."""

_MOST = 2**32
"""Positions and factors from here on are no model's."""


def flags_counted(model: ModelFacts, flags: Flags, rules: VersionRules) -> frozenset[str]:
    """Names of the flags about positions that are counted: where it is sure which positions they lead to."""
    old = _OLD if rules.numbers <= _OLD_UNTIL else frozenset()
    return frozenset({*old, _OVERRIDES}) if _positions(model, flags) is not None else frozenset()


def stretches(flags: Flags) -> bool:
    """True where a flag may give the model other positions than its own."""
    return flags.asks_for({"rope-scaling", _OVERRIDES})


def stretched(model: ModelFacts, flags: Flags) -> ModelFacts:
    """The model with the positions that the flags give it, which may be fewer than its own."""
    positions = _positions(model, flags) if stretches(flags) else None
    if positions in {None, model.max_position}:
        return model
    note = f"its flags give it {positions:,} positions instead of {model.max_position:,}"
    return replace(
        model,
        max_position=positions,
        other_positions=(),
        rope_cache_bytes=max(model.rope_cache_bytes, model.rope_cache_bytes * positions // model.max_position),
        assumptions=(*model.assumptions, note),
    )


def _positions(model: ModelFacts, flags: Flags) -> int | None:
    """Positions of the model with its flags; None where they are not sure, or its server would not start.

    What a model with towers is asked for must stand in its ``text_config``, which others have not.
    """
    overrides, scaling = flags.json_object(_OVERRIDES), flags.json_object("rope-scaling")
    if (overrides or scaling) and (model.vision or model.audio):
        overrides = overrides["text_config"] if overrides and overrides.keys() == {"text_config"} else None
    if not isinstance(overrides, dict) or not overrides.keys() <= _KEYS or scaling is None:
        return None
    sections = [overrides[key] for key in _SCALING if key in overrides] + ([scaling] if scaling else [])
    positions = overrides.get("max_position_embeddings", model.max_position)
    plain = model.family in _UNSTRETCHED or not (sections or "max_position_embeddings" in overrides)
    if not plain or len(sections) > 1 or not _is_count(positions):
        return None
    return _scaled(positions, sections[0]) if sections else int(positions)


def _scaled(positions: int, scaling: Any) -> int | None:
    if not isinstance(scaling, dict):
        return None
    kind, factor = scaling.get("rope_type", scaling.get("type")), scaling.get("factor", 1)
    original = scaling.get("original_max_position_embeddings")
    if kind == "llama3" or not isinstance(factor, int | float) or not 1 <= factor < _MOST:
        return positions if kind == "llama3" else None
    if kind == "yarn":
        return int(factor * original) if _is_count(original) else None
    return int(factor * positions) if kind in _MULTIPLIES else None


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value < _MOST
