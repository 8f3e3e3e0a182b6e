"""Typed flags as the words of a command line, for people and for a revision's arguments."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields
from typing import Final

from agent.fit.flags.flags import AUTO, Flags, SpeculativeFlags

_ENVIRONMENT: Final = ("kv_cache_space_gib", "allows_longer")
_COMPILATION: Final = {"compilation_level": "mode", "cudagraph_mode": "cudagraph_mode"}
_UNTYPED: Final = frozenset(
    {
        "others",
        "as_written",
        "limit_mm_as_words",
        "compilation_as_level",
        *_ENVIRONMENT,
        "compilation_others",
        "model",
        *_COMPILATION,
    }
)


def flag_args(flags: Flags) -> tuple[str, ...]:
    """Write flags as separate arguments, in a fixed order, untyped ones last and unchanged.

    Args:
        flags: Typed flags.

    Returns:
        Words that :func:`parse_flags` reads back to equal flags, each flag once (of two equal JSON
        flags vLLM takes the last alone). Environment variables stand first, as assignments; the model is not among
        them.
    """
    words: list[str] = []
    if flags.kv_cache_space_gib is not None:
        words.append(f"VLLM_CPU_KVCACHE_SPACE={_number(flags.kv_cache_space_gib)}")
    if flags.allows_longer:
        words.append("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1")
    for field in fields(flags):
        value = getattr(flags, field.name)
        if value is not None and field.name not in _UNTYPED:
            words += _words(field.name.replace("_", "-"), value)
            if field.name == "limit_mm_per_prompt" and flags.limit_mm_as_words:
                words[-1] = ",".join(f"{kind}={count}" for kind, count in value)
    if compilation := _compilation(flags):
        as_level = flags.compilation_as_level and compilation.keys() == {"mode"}
        words += ["--compilation-config", str(compilation["mode"]) if as_level else _json(compilation)]
    for other in flags.others:
        words += [f"--{other.name}"] if other.value is None else [f"--{other.name}", *other.value.split(" ")]
    return tuple(words)


def flag_line(flags: Flags) -> str:
    """The same as one shell-quoted line."""
    return shlex.join(flag_args(flags))


def flag_settings(before: Flags, after: Flags) -> dict[str, str | None]:
    """The difference of two sets of flags, as an editor of a command line takes it.

    Args:
        before: What stands there.
        after: What shall stand there.

    Returns:
        New value by flag name without dashes; "" sets a switch, None takes the flag away. A switch that turns into its
        opposite gives both: the old one away, the new one set. Flags that are set inside a JSON flag
        (``compilation-config``) are given as that flag.
    """
    old, new = _by_name(before), _by_name(after)
    changed: dict[str, str | None] = {name: None for name in old if name not in new}
    return changed | {name: value for name, value in new.items() if old.get(name, None) != value or name not in old}


def _by_name(flags: Flags) -> dict[str, str]:
    named: dict[str, list[str]] = {}
    name = ""
    for word in flag_args(flags):
        if word.startswith("--"):
            name = word[2:]
            named[name] = []
        elif name:
            named[name].append(word)
    return {name: " ".join(values) for name, values in named.items()}


def _words(name: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, tuple) and name != "limit-mm-per-prompt":
        return [f"--{name}", *map(str, value)]
    return [f"--{name}", _text(name, value)]


def _text(name: str, value: object) -> str:
    if isinstance(value, SpeculativeFlags):
        return _json(_speculative(value))
    if isinstance(value, tuple):
        return _json(dict(value))
    if name == "max-model-len" and value == AUTO:
        return "auto"
    return _number(value) if isinstance(value, float) else str(value)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and value != 1 else repr(value)


def _compilation(flags: Flags) -> dict[str, object]:
    typed = {key: getattr(flags, name) for name, key in _COMPILATION.items() if getattr(flags, name) is not None}
    return typed | _untyped(flags.compilation_others)


def _untyped(others: tuple[tuple[str, str], ...]) -> dict[str, object]:
    return {key: json.loads(value) for key, value in others}  # not strict: as vLLM itself reads it


def _speculative(given: SpeculativeFlags) -> dict[str, object]:
    found: dict[str, object] = {}
    if given.method:
        found["method"] = given.method
    if given.model:
        found["model"] = given.model
    if given.tokens:
        found["num_speculative_tokens"] = given.tokens
    if given.draft_tensor_parallel_size is not None:
        found["draft_tensor_parallel_size"] = given.draft_tensor_parallel_size
    return found | _untyped(given.others)
