"""The configuration that a server's own log tells: vLLM prints the arguments that were not defaults."""

import ast
import json
import re
from typing import Any

from agent.core.service.serving import ServingConfig

LINE_LIMIT = 20_000  # characters; vLLM's line of all arguments has some hundreds
_PRINTED = re.compile(r"non-default args: (\{.*\})")  # api_server/utils.py of vLLM 0.8 to 0.33
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # what blogs and ticket systems make of them
_NEITHER = frozenset({"model", "model_tag"})


def args_from_log(lines: tuple[str, ...]) -> ServingConfig | None:
    """Return the configuration of the last start in a log, or None where the log does not tell.

    Only literals are read, nothing is evaluated. What a flag's value is is taken at its word: it is outside text
    and only serves arithmetic and instructions for a person.

    Args:
        lines: The instance's own log.
    """
    for line in reversed(lines):
        if len(line) > LINE_LIMIT or "non-default args" not in line:
            continue
        found = _PRINTED.search(line.translate(_QUOTES))
        printed = _literal(found[1]) if found else None
        if printed:
            return ServingConfig(command=("vllm",), args=_args(printed))
    return None


def _literal(text: str) -> dict[str, Any] | None:
    try:
        printed = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return printed if isinstance(printed, dict) and all(isinstance(key, str) for key in printed) else None


def _args(printed: dict[str, Any]) -> tuple[str, ...]:
    model = printed.get("model") or printed.get("model_tag")
    words = ["serve", model] if isinstance(model, str) else ["serve"]
    for name, value in printed.items():
        if name not in _NEITHER:
            words += _flag(name.replace("_", "-"), value)
    return tuple(words)


def _flag(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return [f"--{name}", *map(str, value)]
    return [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
