"""The memory of one device as a line of text, from a fit report's contract."""

from collections.abc import Mapping
from textwrap import wrap
from typing import Final

GIB: Final = 2**30
WIDTH: Final = 32
NARROW: Final = 22
PHONE_CHARS: Final = 30  # of a code block that a phone shows in one line

_PARTS: Final = (
    ("weights", "█", ("weights_bytes",)),
    ("loading", "▓", ("overheads", "load_transient")),
    ("cache", "▒", ("kv_cache_bytes",)),
    ("activations", "░", ("overheads", "activations")),
    ("graphs", "▚", ("overheads", "cuda_graphs")),
    ("driver", "▞", ("overheads", "non_torch")),
)
_WHILE_LOADING: Final = frozenset({"weights", "loading", "driver"})


def memory_text(report: Mapping[str, object] | None) -> str:
    """Return a bar and its parts in GiB, or nothing where weights or device are not known.

    Args:
        report: The keys of the contract, bytes per GPU.

    Returns:
        Such as ``███▒▒▒··  weights 15.1, cache 4.2 of 22.0 GiB``; ``!`` stands where the parts are more than there is.
    """
    drawn = _drawn(report, WIDTH)
    return f"{drawn[0]}  {' '.join(drawn[1:])}" if drawn else ""


def memory_lines(report: Mapping[str, object] | None) -> tuple[str, ...]:
    """Return the same as lines that no phone wraps: the bar, the parts, and what there is."""
    bar, *said = _drawn(report, NARROW) or ("",)
    parts = wrap(said[0], PHONE_CHARS) if said else []
    return (bar, *parts, *said[1:]) if bar else ()


def _drawn(report: Mapping[str, object] | None, width: int) -> tuple[str, ...]:
    """Return the bar, its parts in GiB, and what there is; nothing where weights or device are not known."""
    total = _bytes(report, ("total_bytes",))
    if report is None or not total or not _bytes(report, ("weights_bytes",)):
        return ()
    loading = report.get("reason") == "load_peak"
    sizes = [(n, g, _bytes(report, path)) for n, g, path in _PARTS if n in _BOTH or (n in _WHILE_LOADING) == loading]
    parts = [(name, glyph, size) for name, glyph, size in sizes if size > 0]
    short = max(_bytes(report, ("shortfall_bytes",)), 0)
    bar = "".join(glyph * round(size / total * width) for _, glyph, size in parts)[:width]
    said = ", ".join(f"{name} {size / GIB:.1f}" for name, _, size in parts)
    missing = f"; {short / GIB:.2f} GiB missing" if short >= GIB // 200 else ""
    return f"{bar.ljust(width, '·')}{'!' if short else ''}", said, f"of {total / GIB:.1f} GiB{missing}"


_BOTH: Final = frozenset({"weights", "driver"})


def _bytes(report: Mapping[str, object] | None, path: tuple[str, ...]) -> int:
    value: object = report
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if number and isinstance(value, int | float) and 0 <= value < 2**60 else 0
