"""Flags that stretch a model's positions: a longer context, and a longer table of cosines and sines.

Source: vllm/config/model.py (hf_overrides, _get_and_verify_max_len) and model_executor/layers/rotary_embedding/
(yarn_scaling_rope.py: positions x factor) of 0.33.0, vllm/engine/arg_utils.py (rope_scaling) of 0.9.2, read 2026-11-26.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import ModelFacts

_SECTION = frozenset({"text_config", "rope_scaling", "rope_parameters"})
_KEYS = _SECTION | {"rope_theta", "max_position_embeddings"}
_NAMES = frozenset({"rope-scaling", "rope-theta", "hf-overrides"})


def flags_counted(flags: Flags) -> frozenset[str]:
    """Names of the flags about positions that are counted: overrides of anything else are not."""
    overrides = _object(flags.untyped("hf-overrides"))
    text = None if overrides is None else overrides.get("text_config", {})
    plain = overrides is not None and isinstance(text, dict) and overrides.keys() | text.keys() <= _KEYS
    return _NAMES if plain and _object(flags.untyped("rope-scaling")) is not None else frozenset()


def stretches(flags: Flags) -> bool:
    """True where a flag may give the model other positions than its own."""
    return flags.asks_for({"rope-scaling", "hf-overrides"})


def stretched(model: ModelFacts, flags: Flags) -> ModelFacts:
    """The model with the positions that the flags give it."""
    if not stretches(flags) or not flags_counted(flags):
        return model
    given = (_object(flags.untyped("rope-scaling")) or {}, _object(flags.untyped("hf-overrides")) or {})
    most = max([model.max_position, *(positions for each in given for positions in _positions(each, model))])
    if most == model.max_position:
        return model
    note = f"its flags give it {most:,} positions instead of {model.max_position:,}"
    return replace(
        model,
        max_position=most,
        rope_cache_bytes=model.rope_cache_bytes * most // model.max_position,
        assumptions=(*model.assumptions, note),
    )


def _positions(given: dict[str, Any], model: ModelFacts) -> list[int]:
    """Every number of positions that an object of rope settings leads to."""
    found = [given["max_position_embeddings"]] if isinstance(given.get("max_position_embeddings"), int) else []
    factor, original = given.get("factor"), given.get("original_max_position_embeddings", model.max_position)
    if isinstance(factor, int | float) and isinstance(original, int):
        found.append(int(factor * original))
    for section in _SECTION:
        if isinstance(inner := given.get(section), dict):
            found += _positions(inner, model)
    return found


def _object(text: str | None) -> dict[str, Any] | None:
    """The object that a flag holds, {} where it is not given; None where it is no object."""
    try:
        value = json.loads(text or "{}")  # not strict: as vLLM itself reads it
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
