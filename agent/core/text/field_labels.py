"""What a diagnosis read from a log, in words for people: the name without its unit, and the unit as it is written."""

from typing import Final

UNITS: Final = {"gib": "GiB", "mib": "MiB", "gb": "GB", "s": "s", "seconds": "s", "bytes": "bytes"}


_SPEED: Final = "tokens_per_s"


def field_label(name: str) -> str:
    """Return a field's name for people, its unit in brackets: ``weights load (s)``, ``decode speed (tokens/s)``."""
    bare, unit = _split(name)
    return f"{bare} ({unit})" if unit else bare


def field_text(name: str, value: object) -> str:
    """Return a field with its value: ``weights load 664.24 s``."""
    bare, unit = _split(name)
    plain = figure(value) if isinstance(value, float) else str(value)
    return f"{bare} {plain} {unit}".rstrip()


def figure(value: float) -> str:
    """Return a number for people: thousands set apart, two places at most, and two digits of a small one."""
    return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) >= 0.1 or not value else f"{value:.2g}"


def _split(name: str) -> tuple[str, str]:
    if name.endswith(_SPEED):
        return f"{name.removesuffix(_SPEED)}speed".replace("_", " "), "tokens/s"
    *words, last = name.split("_")
    return (" ".join(words), UNITS[last]) if words and last in UNITS else (name.replace("_", " "), "")
