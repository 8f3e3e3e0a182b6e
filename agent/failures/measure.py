"""Numbers and names out of the log: the fields of a signature, searched near its line first."""

from collections.abc import Mapping, Sequence

import re2

from agent.failures.finding import Value

NEAR_LINES = 12
MAX_SEARCH_CHARS = 262_144
"""Of a longer log only the lines around the decisive one and its head are searched."""

_PROGRAM = (".py", ".pyx", ".cu", ".cpp", ".h")
"""A traceback's frames name files of the program; none of them is what a failure is about."""

_compiled: dict[str, "re2._Regexp"] = {}


def measure(patterns: Mapping[str, str], lines: Sequence[str], index: int) -> dict[str, Value]:
    """Extract the fields of a signature.

    Args:
        patterns: Field name to RE2 pattern with exactly one group; linear time on any input.
        lines: The whole text.
        index: The decisive line; the line itself is searched first, then the lines after it, then before it,
            then the text from its start.

    Returns:
        Fields that were found; whole numbers as int, decimals as float, thousands separators dropped, and the
        full stop of the sentence that a value ends.
    """
    near = "\n".join(lines[index : index + NEAR_LINES])
    before = "\n".join(lines[max(0, index - NEAR_LINES) : index])
    whole = ""
    found: dict[str, Value] = {}
    for name, pattern in patterns.items():
        regex = _compile(pattern)
        text = _first(regex, near) or _first(regex, before)
        if not text:
            whole = whole or "\n".join(lines)[:MAX_SEARCH_CHARS]
            text = _first(regex, whole)
        if text:
            found[name] = _value(text)
    return found


def _first(regex: "re2._Regexp", text: str) -> str:
    """The first value in a text that is no file of the program, without the full stop behind it; empty for none."""
    values = (match.group(1).rstrip(".") for match in regex.finditer(text) if match.group(1))
    return next((value for value in values if value and not value.endswith(_PROGRAM)), "")


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
