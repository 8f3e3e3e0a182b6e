"""The memory bar of one prediction: text for a terminal and SVG for a page, from a FitReport alone."""

from __future__ import annotations

from dataclasses import dataclass

from agent.fit.bounds import GIB, Bounds
from agent.fit.report import FitReport

_PARTS = (
    ("weights", "█", "#3b6fb6", "34"),
    ("load transient", "▓", "#7fa3d6", "94"),
    ("KV cache", "▒", "#2f8f5b", "32"),
    ("activations", "░", "#c98a1b", "33"),
    ("CUDA graphs", "▚", "#8a5fb0", "35"),
    ("overhead", "▞", "#777777", "90"),
)
_FREE = ("free", "·", "#e6e6e6", "2")
_WIDTH = 64
_SHOWN = GIB // 200  # less than half of the last digit would read 0.00


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """One part of the bar, bytes per device."""

    name: str
    bytes: int
    glyph: str
    colour: str
    ansi: str


def segments(report: FitReport) -> tuple[Segment, ...]:
    """The parts of one device in the order they are allocated, free memory last; unknown parts are left out.

    The load transient is shown only where it is what fails: it is gone when the pool is made.
    """
    over = report.overheads
    at_load = report.reason.value == "load_peak"
    values: dict[str, Bounds | None] = {
        "weights": report.weights_bytes,
        "load transient": over.load_transient if at_load else None,
        "KV cache": None if at_load else report.kv_cache_bytes,
        "activations": None if at_load else over.activations,
        "CUDA graphs": None if at_load else over.cuda_graphs,
        "overhead": over.non_torch,
    }
    parts = [
        Segment(name=name, bytes=value.best, glyph=glyph, colour=colour, ansi=ansi)
        for name, glyph, colour, ansi in _PARTS
        if (value := values[name]) is not None and value.best > 0
    ]
    if report.total_bytes is not None:
        left = report.total_bytes.best - sum(part.bytes for part in parts)
        if left > 0:
            name, glyph, colour, ansi = _FREE
            parts.append(Segment(name=name, bytes=left, glyph=glyph, colour=colour, ansi=ansi))
    return tuple(parts)


def text_bar(report: FitReport, *, colour: bool = False) -> str:
    """The bar and its legend; ``|`` marks the end of the device when more is needed than it has."""
    parts = segments(report)
    total = report.total_bytes.best if report.total_bytes else sum(part.bytes for part in parts)
    whole = max(total, sum(part.bytes for part in parts), 1)
    bar, at, mark = "", 0, round(total / whole * _WIDTH)
    reached = 0
    for part in parts:
        reached += part.bytes
        end = round(reached / whole * _WIDTH)
        cells = "".join("|" if mark < _WIDTH and cell == mark else part.glyph for cell in range(at, end))
        bar += f"\x1b[{part.ansi}m{cells}\x1b[0m" if colour and cells else cells
        at = end
    legend = "\n".join(
        f"  {part.glyph} {part.name:<14} {part.bytes / GIB:8.2f} GiB{_range(report, part)}" for part in parts
    )
    short = report.shortfall_bytes
    tail = f"\n  ! short          {short.best / GIB:8.2f} GiB" if short is not None and short.best >= _SHOWN else ""
    return f"[{bar}] {_end(total, whole)}\n{legend}{tail}"


def _end(total: int, whole: int) -> str:
    """What stands at the end of the bar: the device, or the whole need where that goes beyond the device's mark."""
    if whole <= total:
        return f"{total / GIB:.2f} GiB"
    return f"{whole / GIB:.2f} GiB needed; | is the end of the device, {total / GIB:.2f} GiB"


def text_report(report: FitReport, *, model: str, accelerator: str, colour: bool = False) -> str:
    """What a person reads: the verdict, the bar, the printed figures and what had to be assumed."""
    verdict = {True: "fits", False: "does not fit", None: "cannot tell"}[report.fits]
    lines = [f"{model} on {accelerator}: {verdict} ({report.reason.value})", text_bar(report, colour=colour)]
    if report.kv_tokens is not None and report.max_concurrency is not None:
        lines.append(
            f"KV cache size {report.kv_tokens.best:,} tokens, {report.max_concurrency[1]:.2f} requests of "
            f"{report.max_model_len:,} tokens; {report.num_gpu_blocks.best if report.num_gpu_blocks else 0:,} blocks"
        )
    if report.fits is not True and report.estimated_max_model_len:
        lines.append(f"one request could have {report.estimated_max_model_len:,} tokens")
    lines += [f"assumed: {parts_text}" for parts_text in report.assumptions]
    return "\n".join(lines)


def svg_bar(report: FitReport, *, width: int = 720) -> str:
    """The bar as a standalone SVG of ``width`` pixels, with a title for readers that cannot see it."""
    parts = segments(report)
    total = report.total_bytes.best if report.total_bytes else sum(part.bytes for part in parts)
    whole = max(total, sum(part.bytes for part in parts), 1)
    parts_text = ", ".join(f"{part.name} {part.bytes / GIB:.2f} GiB" for part in parts)
    shapes, at = [], 0.0
    for part in parts:
        wide = part.bytes / whole * width
        label = _escape(f"{part.name}: {part.bytes / GIB:.2f} GiB")
        place = f'x="{at:.1f}" y="0" width="{wide:.1f}" height="28"'
        shapes.append(f'<rect {place} fill="{part.colour}"><title>{label}</title></rect>')
        at += wide
    end = total / whole * width
    if end < width:
        shapes.append(f'<line x1="{end:.1f}" x2="{end:.1f}" y1="0" y2="34" stroke="#c0392b" stroke-width="3"/>')
    keys = [
        f'<g transform="translate({column * width // 4},{48 + 20 * row})"><rect width="12" height="12" '
        f'fill="{part.colour}"/><text x="18" y="11">{_escape(part.name)} {part.bytes / GIB:.2f} GiB</text></g>'
        for at_key, part in enumerate(parts)
        for row, column in [divmod(at_key, 4)]
    ]
    title = _escape(f"{report.reason.value}; device {total / GIB:.2f} GiB: {parts_text}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} 92" width="{width}" height="92" '
        f'font-family="sans-serif" font-size="12"><title>{title}</title>{"".join(shapes)}{"".join(keys)}</svg>'
    )


def _escape(text: str) -> str:
    """Text for XML; the library's own escape brings an HTTP client with it, which a cold start would pay for."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _range(report: FitReport, part: Segment) -> str:
    bounds = {
        "weights": report.weights_bytes,
        "KV cache": report.kv_cache_bytes,
        "activations": report.overheads.activations,
        "CUDA graphs": report.overheads.cuda_graphs,
        "overhead": report.overheads.non_torch,
    }.get(part.name)
    if bounds is None or bounds.is_exact:
        return ""
    return f"  ({bounds.low / GIB:.2f} to {bounds.high / GIB:.2f})"
