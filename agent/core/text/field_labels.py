"""What a diagnosis read from a log, in words for people: the name without its unit, and the unit as it is written."""

from typing import Final

UNITS: Final = {"gib": "GiB", "mib": "MiB", "gb": "GB", "s": "s", "seconds": "s", "bytes": "bytes"}


def field_label(name: str) -> str:
    """Return a field's name for people, its unit in brackets: ``weights load (s)``."""
    bare, unit = _split(name)
    return f"{bare} ({unit})" if unit else bare


def field_text(name: str, value: object) -> str:
    """Return a field with its value: ``weights load 664.24 s``."""
    bare, unit = _split(name)
    plain = f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f"{bare} {plain} {unit}".rstrip()


def _split(name: str) -> tuple[str, str]:
    *words, last = name.split("_")
    return (" ".join(words), UNITS[last]) if words and last in UNITS else (name.replace("_", " "), "")
