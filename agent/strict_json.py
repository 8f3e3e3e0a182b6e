"""JSON as outsiders send it, read without mercy: no key twice, no NaN, no depth, no half characters."""

import json
import re
from itertools import accumulate
from typing import Any, NoReturn

from agent.errors import InputRejected

MAX_DEPTH = 64

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))


def read_json(
    raw: bytes,
    *,
    what: str,
    limit: int | None,
    hint: str = "send one JSON document (RFC 8259, UTF-8)",
    depth: int = MAX_DEPTH,
    allow_infinite: bool = False,
) -> Any:
    """Parse one JSON document; time and memory are linear in its length.

    Args:
        raw: The whole document, UTF-8 without a byte-order mark.
        what: Names the document in the error, such as ``push body``.
        limit: The most bytes it may have; None where the caller has capped it.
        hint: What the sender can do, for the error.
        depth: The most arrays and objects inside one another.
        allow_infinite: Let NaN and Infinity through as floats, for documents that are known to hold them.

    Returns:
        What the document says; keys are unique at every level, text has no lone surrogates.

    Raises:
        InputRejected: Too long, too deep, not UTF-8, not JSON, a key twice, a number no double can hold.
    """
    if limit is not None and len(raw) > limit:
        raise InputRejected(
            f"the {what} was not read", why=f"it has {len(raw)} bytes, at most {limit} are taken", hint=hint
        )
    try:
        _check_depth(raw, depth)
        parsed = (_LENIENT if allow_infinite else _STRICT).decode(_text(raw))
        if _SURROGATE.search(raw):
            json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else _says(error)
        raise InputRejected(f"the {what} was not read", why=why, hint=hint) from error
    return parsed


def read_object(
    raw: bytes,
    *,
    what: str,
    limit: int | None,
    hint: str = "send one JSON object (RFC 8259, UTF-8)",
    allow_infinite: bool = False,
) -> dict[str, Any]:
    """Parse one JSON object; arguments and errors as in :func:`read_json`, and anything but an object is refused."""
    parsed = read_json(raw, what=what, limit=limit, hint=hint, allow_infinite=allow_infinite)
    if not isinstance(parsed, dict):
        raise InputRejected(
            f"the {what} was not read", why=f"it is a {type(parsed).__name__}, not an object", hint=hint
        )
    return parsed


def _check_depth(raw: bytes, depth: int) -> None:
    """Measure the nesting before the parser recurses into it; brackets inside strings do not count."""
    if raw.count(b"[") + raw.count(b"{") <= depth:
        return
    brackets = _STRING.sub(b"", raw).translate(None, _NO_BRACKETS)
    if max(accumulate(1 if byte in b"[{" else -1 for byte in brackets), default=0) > depth:
        msg = f"it is nested deeper than {depth}"
        raise ValueError(msg)


def _text(raw: bytes) -> str:
    text = raw.decode("utf-8")
    if text.startswith("\ufeff"):
        msg = "it begins with a byte-order mark (BOM)"
        raise ValueError(msg)
    return text


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        msg = f"the key {_twice(pairs)[:80]!r} stands twice"
        raise ValueError(msg)
    return made


def _twice(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _refuse_constant(name: str) -> NoReturn:
    msg = f"the constant {name} is not JSON"
    raise ValueError(msg)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        msg = f"the number {text[:40]} is beyond a double"
        raise ValueError(msg)
    return number


_STRICT = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite)
_LENIENT = json.JSONDecoder(object_pairs_hook=_without_duplicates)


def _says(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if isinstance(error, UnicodeEncodeError):
        return "it holds half of a surrogate pair"
    return str(error)[:200]
