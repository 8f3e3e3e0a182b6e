"""Flags that one vLLM version does not take: it stops at them before it reads a byte of the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from agent.fit.flags.flags import Flags
from agent.fit.version_rules import VersionRules

_NOT_AS_WRITTEN = frozenset({"others", "disable_hybrid_kv_cache_manager"})
"""A connector implies the hybrid manager's switch without anyone writing it."""

_TYPED = tuple((each.name, each.name.replace("_", "-")) for each in fields(Flags) if each.name not in _NOT_AS_WRITTEN)


def missing_flags(flags: Flags, rules: VersionRules) -> tuple[str, ...]:
    """Say of each given flag whether the version asked for lacks it.

    Args:
        flags: Typed ones count by their present name.
        rules: Of the version; ``flag_versions`` tells which versions take what.

    Returns:
        One sentence for each flag that the versions read on both sides of the one asked for do without.
    """
    return tuple(sentence for name in dict.fromkeys(_given(flags)) if (sentence := _missing(name, rules)) is not None)


def _given(flags: Flags) -> Iterator[str]:
    for field, name in _TYPED:
        if getattr(flags, field) is not None:
            yield name
    for other in flags.others:
        yield other.name


def _missing(name: str, rules: VersionRules) -> str | None:
    span = rules.flag_versions.get(name) or rules.flag_versions.get(name.removeprefix("no-"))
    if span is None:
        return None
    before, first, last, after = span
    too_early = before is not None and rules.numbers <= before
    too_late = after is not None and rules.numbers >= after
    if not (too_early or too_late):
        return None
    version = ".".join(map(str, rules.numbers))
    have = f"{_text(first)} has" if too_early else f"versions until {_text(last)} have"
    return f"vLLM {version} has no --{name}; {have}"


def _text(numbers: tuple[int, ...] | None) -> str:
    return ".".join(map(str, numbers or ()))
