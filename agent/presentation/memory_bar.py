"""The memory of one device as a bar: in a terminal, on a page, as a drawing that stands alone, and on a phone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Final

from agent.fit.bounds import GIB
from agent.fit.report import FitReport

Report = Mapping[str, object]
"""The keys of the contract of `fit`, bytes per device."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One kind of memory: where the contract holds its size, how each medium names it, and how it is drawn.

    Attributes:
        path: Of its size in the contract.
        name: In a terminal, where vLLM's own words fit.
        label: On a page and in a report.
        short: On a phone.
        while_loading: Whether it is held while the weights are loaded; None of what is held then and later.
    """

    kind: str
    path: tuple[str, ...]
    name: str
    label: str
    short: str
    glyph: str
    colour: str
    ansi: str
    while_loading: bool | None


_WEIGHTS = Kind(
    kind="weights", path=("weights_bytes",), name="weights", label="weights", short="weights",
    glyph="█", colour="#3b6fb6", ansi="34", while_loading=None,
)  # fmt: skip
_TRANSIENT = Kind(
    kind="transient", path=("overheads", "load_transient"), name="load transient", label="output head while loading",
    short="loading", glyph="▓", colour="#7fa3d6", ansi="94", while_loading=True,
)  # fmt: skip
_CACHE = Kind(
    kind="cache", path=("kv_cache_bytes",), name="KV cache", label="KV cache", short="cache",
    glyph="▒", colour="#2f8f5b", ansi="32", while_loading=False,
)  # fmt: skip
_ACTIVATIONS = Kind(
    kind="activations", path=("overheads", "activations"), name="activations", label="activations",
    short="activations", glyph="░", colour="#c98a1b", ansi="33", while_loading=False,
)  # fmt: skip
_GRAPHS = Kind(
    kind="graphs", path=("overheads", "cuda_graphs"), name="CUDA graphs", label="CUDA graphs", short="graphs",
    glyph="▚", colour="#8a5fb0", ansi="35", while_loading=False,
)  # fmt: skip
_OTHER = Kind(
    kind="other", path=("overheads", "non_torch"), name="overhead", label="driver and libraries", short="driver",
    glyph="▞", colour="#777777", ansi="90", while_loading=None,
)  # fmt: skip
_FREE = Kind(
    kind="free", path=(), name="free", label="free", short="free",
    glyph="·", colour="#e6e6e6", ansi="2", while_loading=None,
)  # fmt: skip
KINDS: Final = (_WEIGHTS, _TRANSIENT, _CACHE, _ACTIVATIONS, _GRAPHS, _OTHER)
_ON_A_PAGE: Final = (_WEIGHTS, _TRANSIENT, _ACTIVATIONS, _GRAPHS, _OTHER, _CACHE)  # the cache takes what is left

_CELLS: Final = 64
_PHONE_CELLS: Final = 22
PHONE_CHARS: Final = 30  # of a code block that a phone shows in one line
_WIDTH: Final = 1000
_SHOWN: Final = GIB // 200  # less than half of the last digit would read 0.00


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """One part of a device's memory, in bytes."""

    of: Kind
    bytes: int

    @property
    def name(self) -> str:
        """What it is, as a terminal says it."""
        return self.of.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of the bar, ``x`` and ``width`` in thousandths of it."""

    of: Kind
    gib: float
    x: float
    width: float

    @property
    def kind(self) -> str:
        """The word by which a style sheet colours it."""
        return self.of.kind

    @property
    def label(self) -> str:
        """What it is, as a page says it."""
        return self.of.label


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One device, its parts, and where its memory ends; sizes in GiB, places in thousandths of the bar.

    What a device of unknown size has stays None, and its bar ends with its parts.
    """

    parts: tuple[Part, ...]
    total_gib: float | None
    end_x: float
    budget_x: float | None
    budget_gib: float | None
    short_gib: float

    @property
    def says(self) -> str:
        """The bar for somebody who cannot see it."""
        parts = ", ".join(f"{part.label} {part.gib:.2f} GiB" for part in self.parts)
        short = f"; {self.short_gib:.2f} GiB are missing" if self.short_gib >= 0.005 else ""
        device = f"Of {self.total_gib:.2f} GiB" if self.total_gib is not None else "On a device of unknown size"
        return f"{device}: {parts}{short}"


def memory_bar(report: Report | None) -> Bar | None:
    """Return the bar, or None where the report does not know the device or the weights."""
    known = report is not None and _bytes(report, "total_bytes") and _bytes(report, "weights_bytes")
    return _bar(report) if report is not None and known else None


def _bar(report: Report) -> Bar:
    total, budget = _bytes(report, "total_bytes"), _bytes(report, "budget_bytes")
    parts = _segments(report, _ON_A_PAGE)
    whole, placed, at = max(total, sum(part.bytes for part in parts), 1), [], 0
    for part in parts:
        x, width = at / whole * _WIDTH, part.bytes / whole * _WIDTH
        placed.append(Part(of=part.of, gib=part.bytes / GIB, x=x, width=width))
        at += part.bytes
    return Bar(
        parts=tuple(placed),
        total_gib=total / GIB if total else None,
        end_x=total / whole * _WIDTH if total else _WIDTH,
        budget_x=budget / whole * _WIDTH if budget and budget < total else None,
        budget_gib=budget / GIB if budget else None,
        short_gib=_bytes(report, "shortfall_bytes") / GIB,
    )


def segments(report: FitReport) -> tuple[Segment, ...]:
    """The parts of one device in the order they are allocated, free memory last; unknown parts are left out.

    The load transient is shown only where it is what fails: it is gone when the pool is made.
    """
    return _segments(report.to_contract(), KINDS)


def _segments(report: Report, kinds: tuple[Kind, ...]) -> tuple[Segment, ...]:
    loading = report.get("reason") == "load_peak"
    held = (kind for kind in kinds if kind.while_loading in {None, loading})
    parts = [Segment(of=kind, bytes=size) for kind in held if (size := _bytes(report, *kind.path)) > 0]
    left = _bytes(report, "total_bytes") - sum(part.bytes for part in parts)
    return (*parts, *([Segment(of=_FREE, bytes=left)] if left > 0 else []))


def _bytes(report: Report, *path: str) -> int:
    """Read a size; a report is data of ours, but stored and loaded, so a wrong shape is no size."""
    value: object = report
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**60:
        return 0
    return int(value)


def text_bar(report: FitReport, *, colour: bool = False) -> str:
    """The bar and its legend; ``|`` marks the end of the device when more is needed than it has."""
    parts = segments(report)
    total = report.total_bytes.best if report.total_bytes else sum(part.bytes for part in parts)
    whole = max(total, sum(part.bytes for part in parts), 1)
    bar, at, mark = "", 0, round(total / whole * _CELLS)
    reached = 0
    for part in parts:
        reached += part.bytes
        end = round(reached / whole * _CELLS)
        cells = "".join("|" if mark < _CELLS and cell == mark else part.of.glyph for cell in range(at, end))
        bar += f"\x1b[{part.of.ansi}m{cells}\x1b[0m" if colour and cells else cells
        at = end
    ranges = report.to_contract()["ranges"]
    legend = "\n".join(
        f"  {part.of.glyph} {part.name:<14} {part.bytes / GIB:8.2f} GiB{_range(ranges.get('.'.join(part.of.path)))}"
        for part in parts
    )
    short = report.shortfall_bytes
    tail = f"\n  ! short          {short.best / GIB:8.2f} GiB" if short is not None and short.best >= _SHOWN else ""
    return f"[{bar}] {_end(total, whole)}\n{legend}{tail}"


def _end(total: int, whole: int) -> str:
    """What stands at the end of the bar: the device's size, and what marks it where the parts go beyond."""
    return f"{total / GIB:.2f} GiB" if whole <= total else f"| is the end of the device, {total / GIB:.2f} GiB"


def _range(bounds: list[float] | None) -> str:
    return (
        f"  ({bounds[0] / GIB:.2f} to {bounds[1] / GIB:.2f})" if bounds is not None and bounds[0] != bounds[1] else ""
    )


def svg_bar(report: FitReport, *, width: int = 720) -> str:
    """The bar as a standalone SVG of ``width`` pixels, with a title for readers that cannot see it."""
    return device_svg(_bar(report.to_contract()), width=width)


def device_svg(bar: Bar, *, width: int = 720) -> str:
    """Return the drawing: the parts, their sizes, and a red line where the device ends if more is needed."""
    shapes, keys = [], []
    for number, part in enumerate(bar.parts):
        label = escape(f"{part.label} {part.gib:.2f} GiB")
        x, wide, colour = part.x * width / _WIDTH, part.width * width / _WIDTH, part.of.colour
        place = f'x="{x:.1f}" y="0" width="{wide:.1f}" height="28" fill="{colour}"'
        shapes.append(f"<rect {place}><title>{label}</title></rect>")
        row, column = divmod(number, 3)
        keys.append(
            f'<g transform="translate({column * width // 3},{48 + 20 * row})"><rect width="12" height="12" '
            f'fill="{colour}" stroke="#777"/><text x="18" y="11" fill="currentColor">{label}</text></g>'
        )
    end = bar.end_x * width / _WIDTH
    if bar.end_x < _WIDTH:
        shapes.append(f'<line x1="{end:.1f}" x2="{end:.1f}" y1="0" y2="34" stroke="#c0392b" stroke-width="3"/>')
    high = 48 + 20 * -(-len(bar.parts) // 3)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {high}" width="{width}" '
        f'height="{high}" font-family="system-ui,sans-serif" font-size="12"><title>{escape(bar.says)}</title>'
        f"{''.join(shapes)}{''.join(keys)}</svg>"
    )


def device_text(bar: Bar) -> str:
    """Return a page's bar in characters; ``|`` marks the end of the device where more is needed."""
    cells = "".join(
        part.of.glyph * (round((part.x + part.width) * _CELLS / _WIDTH) - round(part.x * _CELLS / _WIDTH))
        for part in bar.parts
    )
    mark = round(bar.end_x * _CELLS / _WIDTH)
    drawn = cells if bar.end_x >= _WIDTH else f"{cells[:mark]}|{cells[mark:]}"
    legend = [f"{part.of.glyph} {part.label:<26} {part.gib:8.2f} GiB" for part in bar.parts]
    short = [f"! {'missing':<26} {bar.short_gib:8.2f} GiB"] if bar.short_gib >= 0.005 else []
    return "\n".join((f"[{drawn}] {bar.total_gib:.2f} GiB", *legend, *short))


def memory_lines(report: Report | None) -> tuple[str, ...]:
    """Return a bar, its parts in GiB and what there is, as lines that no phone wraps.

    Returns:
        Such as ``███▒▒▒··``, ``weights 15.1, cache 4.2``, ``of 22.0 GiB``; ``!`` stands where the parts are more than
        there is. Nothing where weights or device are not known.
    """
    if report is None or memory_bar(report) is None:
        return ()
    total, short = _bytes(report, "total_bytes"), _bytes(report, "shortfall_bytes")
    parts = [part for part in _segments(report, KINDS) if part.of is not _FREE]
    bar = "".join(part.of.glyph * round(part.bytes / total * _PHONE_CELLS) for part in parts)[:_PHONE_CELLS]
    said = ", ".join(f"{part.of.short} {part.bytes / GIB:.1f}" for part in parts)
    missing = f"; {short / GIB:.2f} GiB missing" if short >= _SHOWN else ""
    return (
        f"{bar.ljust(_PHONE_CELLS, '·')}{'!' if short else ''}",
        *wrap(said, PHONE_CHARS),
        f"of {total / GIB:.1f} GiB{missing}",
    )
