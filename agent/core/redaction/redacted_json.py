"""A JSON body without its secrets, and still the same event: for a queue that keeps bodies on a disk."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agent.errors import InputRejected
from agent.strict_json import read_json

Redact = Callable[[str], str]

SAID: Final = frozenset({"jsonPayload", "protoPayload", "httpRequest"})
"""Parts of a log entry in which a value may be a secret by the name beside it; elsewhere names name things."""


def body_without_secrets(data: str, redact: Redact) -> str:
    """Take the secrets out of a body's texts.

    What an event is told by (ids, times, names of services) stays: outside ``SAID`` a text is taken only for what it
    looks like itself. The same body always gives the same result.

    Args:
        data: A body as it arrived; what is no JSON is treated as one text.
        redact: Takes secrets out of a text.

    Returns:
        The very same string where nothing was found. Not promised: secrets in names of keys, in numbers, or in pieces
        over several texts.
    """
    try:
        body = read_json(data.encode("utf-8", "surrogatepass"), what="body", limit=None)
    except InputRejected:
        return redact(data)
    every = "\n".join(_texts(body, ""))
    if redact(every) == every:
        return data
    clean = _clean(body, redact, key="", said=False)
    return data if clean == body else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))


def _texts(value: Any, key: str) -> Iterator[str]:
    """Yield every text behind its name; what is found in none of them is in none of them alone either."""
    if isinstance(value, str):
        yield f"{key}: {value}"
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, _beside(value, name))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)


def _clean(value: Any, redact: Redact, *, key: str, said: bool) -> Any:
    if isinstance(value, str):
        return _text(value, redact, key=key if said else "")
    if isinstance(value, Mapping):
        return {
            name: _clean(inner, redact, key=_beside(value, name), said=said or name in SAID)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_clean(inner, redact, key=key, said=said) for inner in value]
    return value


def _text(text: str, redact: Redact, *, key: str) -> str:
    bare = redact(text)
    if not key:
        return bare
    before = f"{key}: "
    named = redact(before + text)
    return named.removeprefix(before) if named != before + text else bare


def _beside(holder: Mapping[str, Any], name: str) -> str:
    """Return what a value is called: its key, or what stands in ``{"name": "DB_PASSWORD", "value": "..."}``."""
    called = holder.get("name")
    return called if name == "value" and isinstance(called, str) else name
