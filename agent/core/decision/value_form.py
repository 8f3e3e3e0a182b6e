"""The form of a value: what a flag or variable may be set to, written in one short line of the policy."""

import re
from typing import Final

from agent.errors import InputRejected
from agent.strict_json import read_json

LONGEST: Final = 512

_RANGE = re.compile(r"(?P<kind>whole|number) (?P<low>[0-9]+(?:\.[0-9]+)?)\.\.(?P<high>[0-9]+(?:\.[0-9]+)?)")
_NAMED = frozenset({"switch", "word", "json"})
_LITERAL = re.compile(r"'[A-Za-z0-9._,:/-]{1,64}'")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # no dot and no slash: never a path or a class to import
_WHOLE = re.compile(r"[0-9]{1,15}")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_PLAIN_JSON = frozenset({"str", "int", "float", "bool", "NoneType"})


def form_error(form: str) -> str:
    """Return what is wrong with a form, or nothing.

    Args:
        form: Alternatives separated by ``|``: ``switch``, ``word``, ``json`` (numbers and switches by name),
            ``whole 1..8``, ``number 0.1..1`` (both ends belong to it), or a value in single quotes.
    """
    for part in _parts(form):
        found = _RANGE.fullmatch(part)
        if found and float(found["low"]) > float(found["high"]):
            return f"{part!r} holds nothing"
        if not (found or part in _NAMED or _LITERAL.fullmatch(part)):
            return f"{part!r} is no form, want switch, word, json, whole A..B, number A..B or 'value'"
    return ""


def matches_form(form: str, value: str) -> bool:
    """Whether a value has the form; anything long or with control characters has none."""
    if len(value) > LONGEST or any(ord(sign) < 32 or ord(sign) == 127 for sign in value):
        return False
    return any(_takes(part, value) for part in _parts(form))


def _parts(form: str) -> list[str]:
    return [part.strip() for part in form.split("|")]


def _takes(part: str, value: str) -> bool:
    if part == "switch":
        return value == ""
    if part == "word":
        return bool(_WORD.fullmatch(value))
    if part == "json":
        return _plain_json(value)
    found = _RANGE.fullmatch(part)
    if found is None:
        return value == part[1:-1]
    pattern = _WHOLE if found["kind"] == "whole" else _NUMBER
    return bool(pattern.fullmatch(value)) and float(found["low"]) <= float(value) <= float(found["high"])


def _plain_json(value: str) -> bool:
    """One flat object or list of numbers, switches and plain words: nothing in it can name code to load."""
    try:
        parsed = read_json(value.encode(), what="value", limit=None)
    except (InputRejected, UnicodeError):
        return False
    entries = parsed.values() if isinstance(parsed, dict) else parsed if isinstance(parsed, list) else None
    if entries is None or (isinstance(parsed, dict) and not all(_WORD.fullmatch(key) for key in parsed)):
        return False
    return all(
        type(entry).__name__ in _PLAIN_JSON and (not isinstance(entry, str) or bool(_WORD.fullmatch(entry)))
        for entry in entries
    )
