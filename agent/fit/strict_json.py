"""JSON as outsiders send it, read without mercy: no duplicate keys, no NaN, no depth, no surprises."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from agent.errors import InputRejected


def strict_object(raw: bytes, *, what: str, allow_infinite: bool = False) -> dict[str, Any]:
    """Parse one JSON object.

    Args:
        raw: UTF-8 bytes of the whole document; the caller has capped them.
        what: Names the document in the error, "header of 'a.safetensors'".
        allow_infinite: Let NaN and Infinity through as floats. Some published config.json files hold an
            infinite limit in keys that nobody here reads; a tensor header never does.

    Returns:
        The object; numbers are int or float, keys are unique at every level.

    Raises:
        InputRejected: Not UTF-8, not JSON, not an object, a key twice, a constant outside JSON, nesting
            deeper than the interpreter's limit, or an integer of thousands of digits.
    """

    def refuse_constant(name: str) -> NoReturn:
        msg = f"the constant {name} is not JSON"
        raise ValueError(msg)

    try:
        parsed = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_without_duplicates,
            parse_constant=None if allow_infinite else refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise _refused(what, why) from error
    if not isinstance(parsed, dict):
        raise _refused(what, f"it is a {type(parsed).__name__}, not an object")
    return parsed


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        msg = f"the key {twice[:80]!r} stands twice"
        raise ValueError(msg)
    return made


def _refused(what: str, why: str) -> InputRejected:
    return InputRejected(f"the {what} was not read", why=why, mend="download the file again or ask its publisher")
