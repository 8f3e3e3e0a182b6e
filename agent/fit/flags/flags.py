"""The vLLM flags of one server: the ones that move memory typed, all others kept word for word."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

from agent.errors import InputRejected
from agent.fit.flags.server_flags import AUTO, NO_ITEMS, Flags, OtherFlag, SpeculativeFlags

__all__ = ("AUTO", "NO_ITEMS", "Flags", "OtherFlag", "SpeculativeFlags", "human_int", "parse_flags", "typed_flag_names")

_HINT = "Write flags as vLLM takes them, shell-quoted: --max-model-len 8192 --limit-mm-per-prompt '{\"image\":0}'"
_COUNTS = re.compile(r"[a-z]+=\d+(?:,[a-z]+=\d+)*")
"""How vLLM before 0.10 takes ``--limit-mm-per-prompt``."""
_LEVEL = re.compile(r"[0-3]")
"""How vLLM up to 0.9 takes ``--compilation-config`` beside an object (config.py, ``CompilationConfig.from_cli``)."""

_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_flags(flags: str | Sequence[str]) -> Flags:
    """Read vLLM flags from one shell-quoted string or a list of words.

    Args:
        flags: ``--flag value`` and ``--flag=value``, dashes or underscores, vLLM's short forms, JSON values and dotted
            JSON keys (``--speculative-config.model X``); the words ``vllm serve MODEL`` and environment assignments
            may stand first. The last of two equal flags wins, as in vLLM; dotted keys are one JSON value that stands
            last, so a whole one beside them counts for nothing (vllm/utils/argparse_utils.py, read 2026-11-21).

    Returns:
        The typed flags, and all others in their order.

    Raises:
        InputRejected: If the quoting is broken, a value does not parse or is out of range, or a word has no flag.
    """
    words = _words(flags)
    read = _Read()
    for name, inline, following in _pairs(words, read.values):
        _take(name, inline, following, read)
    for key, (name, given) in (read.whole | read.dotted).items():
        _OBJECTS[key](name, given, read.values)
    _check_ranges(read.values)
    return Flags(**read.values, others=tuple(read.others), as_written=tuple(read.written))


def typed_flag_names() -> frozenset[str]:
    """Names of every flag that is read into a typed value, without dashes, hyphens inside; older names included."""
    return _BOOLEANS | _SCALARS.keys() | _OBJECTS.keys() | _RENAMED.keys() | {*_SHORT.values()}


def human_int(text: str) -> int:
    """Read 8192, 25.6k (decimal), 32K (binary) or ``auto`` / -1, as vLLM's own command line does.

    Source: vllm/utils/argparse_utils.py human_readable_int_or_auto, version 0.32.0, read 2026-11-21.
    """
    text = text.strip()
    if text.lower() == "auto":
        return AUTO
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text)
    if match is None:
        return int(text)
    number, suffix = match.groups()
    return int(float(number) * _DECIMAL[suffix]) if suffix in _DECIMAL else int(number) * _BINARY[suffix]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Read:
    """What was read so far: typed values, other flags, JSON flags by key, whole or made of dotted keys, and names."""

    values: dict[str, Any] = field(default_factory=dict)
    others: list[OtherFlag] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    whole: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    dotted: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)


def _words(flags: str | Sequence[str]) -> list[str]:
    if not isinstance(flags, str):
        return list(flags)
    try:
        return shlex.split(flags)
    except ValueError as error:
        raise InputRejected(f"flags {flags!r} were not read", why=str(error).lower(), hint=_HINT) from error


def _pairs(words: list[str], values: dict[str, Any]) -> Iterator[tuple[str, str | None, list[str]]]:
    """Yield (name, inline value, words up to the next flag); consumes what may stand before the first flag."""
    at = 0
    while at < len(words) and not words[at].startswith("-"):
        name, equals, value = words[at].partition("=")
        if equals and re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            if name == "VLLM_CPU_KVCACHE_SPACE":
                values["kv_cache_space_gib"] = _parsed(name, value, float)
            elif name == "VLLM_ALLOW_LONG_MAX_MODEL_LEN" and value.strip().lower() in {"1", "true"}:
                values["allows_longer"] = True
        elif at and words[at - 1] == "serve":
            values["model"] = words[at]
        elif words[at] not in {"vllm", "serve"}:
            raise InputRejected(f"the word {words[at]!r} was not read", why="it follows no flag", hint=_HINT)
        at += 1
    while at < len(words):
        name, equals, inline = words[at].partition("=")
        end = at + 1
        while end < len(words) and not _is_flag(words[end]):
            end += 1
        yield name, inline if equals else None, words[at + 1 : end]
        at = end


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-\d+(\.\d+)?", word)


def _take(name: str, inline: str | None, following: list[str], read: _Read) -> None:
    head, dot, rest = name.partition(".")
    key = _SHORT.get(head, head.lstrip("-").replace("_", "-"))
    if key in _SHARED_FIELDS or key in _RENAMED:
        read.written.append(key)
    key = _RENAMED.get(key, key)
    given = [inline, *following] if inline is not None else following
    values = read.values
    if dot:
        _merge(key, rest, _single(name, given), read)
    elif key in _BOOLEANS or key.removeprefix("no-") in _BOOLEANS:
        values[key.removeprefix("no-").replace("-", "_")] = _boolean(name, given) != key.startswith("no-")
    elif key in _SCALARS:
        values[key.replace("-", "_")] = _parsed(name, _single(name, given), _SCALARS[key])
    elif key == "cudagraph-capture-sizes":
        values["cudagraph_capture_sizes"] = tuple(_parsed(name, word, int) for word in given)
    elif key in _OBJECTS:
        _take_object(name, key, _single(name, given), read)
    elif key == "optimization-level":
        values["compilation_level"] = _parsed(name, _single(name, given), int)
    elif re.fullmatch(r"O[0-3]", key):
        values["compilation_level"] = int(key[1:])
    else:
        read.others.append(OtherFlag(name=key, value=" ".join(given) if given else None))


def _take_object(name: str, key: str, text: str, read: _Read) -> None:
    if key == "compilation-config" and _LEVEL.fullmatch(text):
        read.values["compilation_as_level"] = True
        read.whole[key] = (name, {"level": int(text)})
        return
    read.whole[key] = (name, _json(name, text))
    if key == "limit-mm-per-prompt" and _COUNTS.fullmatch(text):
        read.values["limit_mm_as_words"] = True


def _single(name: str, given: list[str]) -> str:
    if len(given) == 1:
        return given[0]
    why = "it has no value" if not given else f"it has {len(given)} values, {given!r}"
    raise InputRejected(f"flag {name!r} was not read", why=why, hint=_HINT)


def _boolean(name: str, given: list[str]) -> bool:
    if not given:
        return True
    word = _single(name, given).lower()
    if word in {"true", "1", "false", "0"}:
        return word in {"true", "1"}
    raise InputRejected(f"flag {name!r} was not read", why=f"{given[0]!r} is neither true nor false", hint=_HINT)


def _parsed(name: str, text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except (ValueError, OverflowError) as error:
        kind = "number" if parse in {int, float, human_int} else "value of this flag"
        raise InputRejected(f"flag {name!r} was not read", why=f"{text!r} is no {kind}", hint=_HINT) from error


def _json(name: str, text: str) -> dict[str, Any]:
    if name.endswith("limit-mm-per-prompt") and _COUNTS.fullmatch(text):
        return _counts(name, text)
    try:
        value = json.loads(text)  # not strict: as vLLM itself reads it
    except (ValueError, RecursionError) as error:
        why = f"{text!r} is not JSON (quotes are easily lost in a deploy command)"
        raise InputRejected(f"flag {name!r} was not read", why=why, hint=_HINT) from error
    if not isinstance(value, dict):
        raise InputRejected(f"flag {name!r} was not read", why=f"{text!r} is not a JSON object", hint=_HINT)
    return cast("dict[str, Any]", value)


def _counts(name: str, text: str) -> dict[str, Any]:
    pairs = [part.split("=") for part in text.split(",")]
    counts = {kind: int(count) for kind, count in pairs}
    if len(counts) < len(pairs):
        raise InputRejected(f"flag {name!r} was not read", why=f"{text!r} names one of them twice", hint=_HINT)
    return counts


def _merge(key: str, path: str, text: str, read: _Read) -> None:
    """Dotted keys: ``--speculative-config.model X`` adds one key to the object, ``--a.b.c X`` to the object in it."""
    if key not in _OBJECTS:
        read.others.append(OtherFlag(name=f"{key}.{path}", value=text))
        return
    try:
        value = json.loads(text)  # not strict: as vLLM itself reads it
    except (ValueError, RecursionError):
        value = text
    *outer, last = path.split(".")
    _, level = read.dotted.setdefault(key, (f"--{key}", {}))
    for part in outer:
        inner = level.get(part)
        level[part] = level = inner if isinstance(inner, dict) else {}
    level[last] = value


def _limit_mm(name: str, given: dict[str, Any], values: dict[str, Any]) -> None:
    counts = {}
    for kind, limit in given.items():
        count = limit.get("count") if isinstance(limit, dict) else limit
        if not isinstance(count, int) or count < 0:
            raise InputRejected(f"flag {name!r} was not read", why=f"{kind!r} is {limit!r}, want a count", hint=_HINT)
        counts[kind] = count
    values["limit_mm_per_prompt"] = tuple(sorted(counts.items()))


def _speculative(name: str, given: dict[str, Any], values: dict[str, Any]) -> None:
    merged = {each.name: getattr(SpeculativeFlags(), each.name) for each in fields(SpeculativeFlags)}
    others = {}
    for key, value in given.items():
        if key not in _SPECULATIVE:
            others[key] = _compact(value)
            continue
        target, wanted = _SPECULATIVE[key]
        if value is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
            raise InputRejected(f"flag {name!r} was not read", why=f"{key!r} is {value!r}", hint=_HINT)
        merged[target] = value if value is not None else merged[target]
    values["speculative_config"] = SpeculativeFlags(**{**merged, "others": tuple(sorted(others.items()))})


def _compilation(name: str, given: dict[str, Any], values: dict[str, Any]) -> None:
    others = {}
    for key, value in given.items():
        if key not in _COMPILATION:
            others[key] = _compact(value)
        elif value is not None:
            target, read = _COMPILATION[key]
            found = read(value)
            if found is None:
                raise InputRejected(f"flag {name!r} was not read", why=f"{key!r} is {value!r}", hint=_HINT)
            values[target] = found
    values["compilation_others"] = tuple(sorted(others.items()))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _sizes(value: object) -> tuple[int, ...] | None:
    sizes = tuple(map(_whole, value)) if isinstance(value, list) else (None,)
    return cast("tuple[int, ...]", sizes) if None not in sizes else None


def _level(value: object) -> int | None:
    return _MODES.get(value.upper()) if isinstance(value, str) else _whole(value)


def _upper(value: object) -> str | None:
    return value.upper() if isinstance(value, str) else None


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _check_ranges(values: dict[str, Any]) -> None:
    for name, (low, high) in _RANGES.items():
        value = values.get(name)
        if value is None or (name == "max_model_len" and value == AUTO):
            continue
        if not low <= value <= high:
            flag = "--" + name.replace("_", "-")
            want = f"{low} to {high}" if high < _MANY else f"at least {low}"
            raise InputRejected(f"flag {flag} was refused", why=f"{value!r} is out of range, want {want}", hint=_HINT)


def _word(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text.strip().lower()


_MANY = 2**62
_SHORT = {"-tp": "tensor-parallel-size", "-pp": "pipeline-parallel-size", "-dp": "data-parallel-size",
          "-q": "quantization", "-cc": "compilation-config", "-sc": "speculative-config", "-O": "optimization-level",
          "-ep": "enable-expert-parallel"}  # fmt: skip
_RENAMED = {
    "kv-cache-memory": "kv-cache-memory-bytes",
    "device-memory-utilization": "gpu-memory-utilization",
    "cuda-graph-sizes": "cudagraph-capture-sizes",
}
_SHARED_FIELDS = frozenset({
    "compilation-config", "cudagraph-capture-sizes", "max-cudagraph-capture-size", "optimization-level",
})  # fmt: skip
_BOOLEANS = frozenset({
    "enforce-eager", "async-scheduling", "enable-chunked-prefill", "enable-prefix-caching", "enable-expert-parallel",
    "language-model-only", "skip-mm-profiling", "disable-chunked-mm-input", "disable-hybrid-kv-cache-manager",
    "disable-sliding-window",
})  # fmt: skip
_SCALARS: dict[str, Callable[[str], Any]] = {
    "tensor-parallel-size": int, "pipeline-parallel-size": int, "data-parallel-size": int,
    "gpu-memory-utilization": float, "max-model-len": human_int, "max-num-seqs": human_int,
    "max-num-batched-tokens": human_int, "kv-cache-dtype": _word, "mamba-ssm-cache-dtype": _word,
    "mm-encoder-tp-mode": _word, "performance-mode": _word,
    "dtype": _word, "quantization": _word, "model": str,
    "block-size": int, "cpu-offload-gb": float, "cpu-offload-params": str,
    "kv-cache-memory-bytes": human_int, "num-gpu-blocks-override": int,
    "max-cudagraph-capture-size": int,
}  # fmt: skip
_SPECULATIVE: dict[str, tuple[str, type]] = {
    "method": ("method", str), "model": ("model", str), "num_speculative_tokens": ("tokens", int),
    "draft_tensor_parallel_size": ("draft_tensor_parallel_size", int),
}  # fmt: skip
_MODES = {"NONE": 0, "STOCK_TORCH_COMPILE": 1, "DYNAMO_TRACE_ONCE": 2, "VLLM_COMPILE": 3}
"""vllm/config/compilation.py ``CompilationMode`` of 0.32, read 2026-11-21; ``level`` is its name before 0.12."""

_COMPILATION: dict[str, tuple[str, Callable[[object], Any]]] = {
    "mode": ("compilation_level", _level), "level": ("compilation_level", _level),
    "cudagraph_mode": ("cudagraph_mode", _upper), "cudagraph_capture_sizes": ("cudagraph_capture_sizes", _sizes),
    "max_cudagraph_capture_size": ("max_cudagraph_capture_size", _whole),
}  # fmt: skip
_OBJECTS: dict[str, Callable[[str, dict[str, Any], dict[str, Any]], None]] = {
    "limit-mm-per-prompt": _limit_mm, "speculative-config": _speculative, "compilation-config": _compilation,
}  # fmt: skip
_RANGES: dict[str, tuple[float, float]] = {
    "tensor_parallel_size": (1, 4096), "pipeline_parallel_size": (1, 4096), "data_parallel_size": (1, 4096),
    "gpu_memory_utilization": (1e-6, 1.0), "max_model_len": (1, _MANY), "max_num_seqs": (1, _MANY),
    "max_num_batched_tokens": (1, _MANY), "block_size": (1, 65536), "cpu_offload_gb": (0, _MANY),
    "kv_cache_memory_bytes": (1, _MANY), "num_gpu_blocks_override": (1, _MANY), "kv_cache_space_gib": (0, _MANY),
}  # fmt: skip
