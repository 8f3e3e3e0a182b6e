"""Flags that one vLLM version does not take: it stops at them before it reads a byte of the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import ModelFacts
from agent.fit.version_rules import FlagVersions, VersionRules

_NOT_AS_WRITTEN = frozenset({
    "others", "as_written", "disable_hybrid_kv_cache_manager", "cudagraph_capture_sizes", "max_cudagraph_capture_size",
})  # fmt: skip
"""A connector implies the hybrid manager's switch without anyone writing it; another flag may set the sizes."""

_ALL_READ_LIMITS_FROM = (0, 16)
_READS_LIMITS_FROM = {
    "Qwen2VLForConditionalGeneration": (0, 10, 2),
    "Qwen2_5_VLForConditionalGeneration": (0, 10, 2),
    "Qwen3VLForConditionalGeneration": (0, 11),
    "Qwen3VLMoeForConditionalGeneration": (0, 11),
    "LlavaForConditionalGeneration": (0, 10, 2),
    "Llama4ForConditionalGeneration": (0, 10, 2),
    "Mistral3ForConditionalGeneration": (0, 10, 2),
    "PixtralForConditionalGeneration": (0, 12),
}

_TYPED = tuple((each.name, each.name.replace("_", "-")) for each in fields(Flags) if each.name not in _NOT_AS_WRITTEN)


NEVER_TAKEN = "no vLLM version that was read takes"


def missing_flags(flags: Flags, rules: VersionRules) -> tuple[str, ...]:
    """Say of each given flag whether the version asked for lacks it, or does not take its value.

    Args:
        flags: Typed ones count by their present name.
        rules: Of the version; ``flag_versions`` tells which versions take what.

    Returns:
        One sentence for each flag that the versions read on both sides of the one asked for do without.
    """
    return tuple(filter(None, (_missing(name, value, rules) for name, value in dict.fromkeys(_given(flags)))))


def reads_limits(model: ModelFacts, rules: VersionRules) -> bool:
    """Whether a version leaves a tower out whose items are limited to none; before 0.16 a model's own code decided.

    Source: get_limit_per_prompt in vllm/model_executor/models of 0.10.0 to 0.14.1, _mark_tower_model in interfaces.py
    of 0.16.0, read 2026-11-26.
    """
    return rules.numbers >= _READS_LIMITS_FROM.get(model.architecture, _ALL_READ_LIMITS_FROM)


def _given(flags: Flags) -> Iterator[tuple[str, str | None]]:
    for field, name in _TYPED:
        if (value := getattr(flags, field)) is not None:
            yield name, value if isinstance(value, str) else None
    for name in flags.as_written:
        yield name, None
    for other in flags.others:
        yield other.name.partition(".")[0], other.value


def _missing(name: str, value: str | None, rules: VersionRules) -> str | None:
    spans, version = rules.flag_versions, ".".join(map(str, rules.numbers))
    if name.startswith("no-") and f"{name}=" in spans:
        return f"{NEVER_TAKEN} --{name}"
    if (have := _elsewhere(spans.get(name), rules)) is not None:
        return f"vLLM {version} has no --{name}; {have}"
    if value is None or f"{name}=" not in spans:
        return None
    if (span := spans.get(f"{name}={value}")) is None:
        return f"{NEVER_TAKEN} --{name} {value}"
    have = _elsewhere(span, rules)
    return None if have is None else f"vLLM {version} takes no --{name} {value}; {have}"


def _elsewhere(span: FlagVersions | None, rules: VersionRules) -> str | None:
    """Which versions have it, where the one asked for does not; builds before the first without it, and forks, may."""
    before, first, last, after = span or (None, None, None, None)
    if before is not None and rules.numbers <= before and not rules.is_of_a_checkout:
        return f"{_text(first)} has"
    if after is not None and (rules.numbers > after or (rules.numbers == after and not rules.is_early)):
        return f"versions until {_text(last)} have"
    return None


def _text(numbers: tuple[int, ...] | None) -> str:
    return ".".join(map(str, numbers or ()))
