"""The memory of one device as lines of text, from a fit report's contract."""

from collections.abc import Mapping
from textwrap import wrap
from typing import Final

GIB: Final = 2**30
WIDTH: Final = 22
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


def memory_lines(report: Mapping[str, object] | None) -> tuple[str, ...]:
    """Return a bar, its parts in GiB and what there is, as lines that no phone wraps.

    Args:
        report: The keys of the contract, bytes per GPU.

    Returns:
        Such as ``███▒▒▒··``, ``weights 15.1, cache 4.2``, ``of 22.0 GiB``; ``!`` stands where the parts are more than
        there is. Nothing where weights or device are not known.
    """
    total = _bytes(report, ("total_bytes",))
    if report is None or not total or not _bytes(report, ("weights_bytes",)):
        return ()
    loading = report.get("reason") == "load_peak"
    sizes = [(n, g, _bytes(report, path)) for n, g, path in _PARTS if n in _BOTH or (n in _WHILE_LOADING) == loading]
    parts = [(name, glyph, size) for name, glyph, size in sizes if size > 0]
    short = max(_bytes(report, ("shortfall_bytes",)), 0)
    bar = "".join(glyph * round(size / total * WIDTH) for _, glyph, size in parts)[:WIDTH]
    said = ", ".join(f"{name} {size / GIB:.1f}" for name, _, size in parts)
    missing = f"; {short / GIB:.2f} GiB missing" if short >= GIB // 200 else ""
    return (
        f"{bar.ljust(WIDTH, '·')}{'!' if short else ''}",
        *wrap(said, PHONE_CHARS),
        f"of {total / GIB:.1f} GiB{missing}",
    )


_BOTH: Final = frozenset({"weights", "driver"})


def _bytes(report: Mapping[str, object] | None, path: tuple[str, ...]) -> int:
    value: object = report
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if number and isinstance(value, int | float) and 0 <= value < 2**60 else 0
