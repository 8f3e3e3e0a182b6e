"""Numbers and names out of the log: the fields of a signature, searched near its line first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import re2

from agent.failures.finding import Value

NEAR_LINES = 12
MAX_SEARCH_CHARS = 262_144
"""Of a longer log only the lines around the decisive one and its head are searched."""

_PROGRAM = (".py", ".pyx", ".cu", ".cpp", ".h")
"""A traceback's frames name files of the program; none of them is what a failure is about."""

_compiled: dict[str, "re2._Regexp"] = {}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Fields that were found: their values, and by field the index of the line that it was read from."""

    values: Mapping[str, Value]
    lines: Mapping[str, int]


def measure(patterns: Mapping[str, str], lines: Sequence[str], index: int) -> Measured:
    """Extract the fields of a signature, each with the line that it was read from.

    Args:
        patterns: Field name to RE2 pattern with exactly one group; linear time on any input.
        lines: The whole text.
        index: The decisive line; the line itself is searched first, then the lines after it, then before it,
            then the text from its start.

    Returns:
        Fields that were found; whole numbers as int, decimals as float, thousands separators dropped, and the
        full stop of the sentence that a value ends.
    """
    first = max(0, index - NEAR_LINES)
    near = "\n".join(lines[index : index + NEAR_LINES])
    before = "\n".join(lines[first:index])
    whole: str | None = None
    found: dict[str, tuple[str, int]] = {}
    for name, pattern in patterns.items():
        regex = _compile(pattern)
        hit = _first(regex, near, index) or _first(regex, before, first)
        if hit is None:
            whole = "\n".join(lines)[:MAX_SEARCH_CHARS] if whole is None else whole
            hit = _first(regex, whole, 0)
        if hit is not None:
            found[name] = hit
    values = {name: _value(text) for name, (text, _) in found.items()}
    return Measured(values=values, lines={name: line for name, (_, line) in found.items()})


def _first(regex: "re2._Regexp", text: str, base: int) -> tuple[str, int] | None:
    """The first value in a text that is no file of the program, without the full stop behind it, and its line."""
    for match in regex.finditer(text):
        value = (match.group(1) or "").rstrip(".")
        if value and not value.endswith(_PROGRAM):
            return value, base + text.count("\n", 0, match.start(1))
    return None


def _compile(pattern: str) -> "re2._Regexp":
    regex = _compiled.get(pattern)
    if regex is None:
        regex = _compiled[pattern] = re2.compile(pattern)
    return regex


def _value(text: str) -> Value:
    plain = text.replace(",", "").strip()
    digits = plain.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 18:
        return int(plain)
    if digits.isascii() and digits.count(".") == 1 and digits.replace(".", "").isdigit() and len(digits) <= 24:
        return float(plain)
    return text.strip()[:200]
