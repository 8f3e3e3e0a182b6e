"""The memory of one device as a drawing that stands alone, and in characters for what cannot hold one."""

from collections.abc import Mapping
from html import escape
from typing import Final

from agent.presentation.report.device_bar import Bar

_WIDTH: Final = 720
_CELLS: Final = 64
_COLOURS: Final[Mapping[str, str]] = {
    "weights": "#3b6fb6",
    "transient": "#7fa3d6",
    "activations": "#c98a1b",
    "graphs": "#8a5fb0",
    "other": "#777777",
    "cache": "#2f8f5b",
    "free": "#e6e6e6",
}
_GLYPHS: Final[Mapping[str, str]] = {
    "weights": "█",
    "transient": "▓",
    "activations": "░",
    "graphs": "▚",
    "other": "▞",
    "cache": "▒",
    "free": "·",
}


def device_svg(bar: Bar) -> str:
    """Return the drawing: the parts, their sizes, and a red line where the device ends if more is needed."""
    shapes, keys = [], []
    for number, part in enumerate(bar.parts):
        label = escape(f"{part.label} {part.gib:.2f} GiB")
        x, wide, colour = part.x * _WIDTH / 1000, part.width * _WIDTH / 1000, _COLOURS[part.kind]
        place = f'x="{x:.1f}" y="0" width="{wide:.1f}" height="28" fill="{colour}"'
        shapes.append(f"<rect {place}><title>{label}</title></rect>")
        row, column = divmod(number, 3)
        keys.append(
            f'<g transform="translate({column * _WIDTH // 3},{48 + 20 * row})"><rect width="12" height="12" '
            f'fill="{colour}" stroke="#777"/><text x="18" y="11" fill="currentColor">{label}</text></g>'
        )
    end = bar.end_x * _WIDTH / 1000
    if bar.end_x < 1000:
        shapes.append(f'<line x1="{end:.1f}" x2="{end:.1f}" y1="0" y2="34" stroke="#c0392b" stroke-width="3"/>')
    high = 48 + 20 * -(-len(bar.parts) // 3)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH} {high}" width="{_WIDTH}" '
        f'height="{high}" font-family="system-ui,sans-serif" font-size="12"><title>{escape(bar.says)}</title>'
        f"{''.join(shapes)}{''.join(keys)}</svg>"
    )


def device_text(bar: Bar) -> str:
    """Return the same in characters; ``|`` marks the end of the device where more is needed."""
    cells = "".join(
        _GLYPHS[part.kind] * (round((part.x + part.width) * _CELLS / 1000) - round(part.x * _CELLS / 1000))
        for part in bar.parts
    )
    mark = round(bar.end_x * _CELLS / 1000)
    drawn = cells if bar.end_x >= 1000 else f"{cells[:mark]}|{cells[mark:]}"
    legend = [f"{_GLYPHS[part.kind]} {part.label:<26} {part.gib:8.2f} GiB" for part in bar.parts]
    short = [f"! {'missing':<26} {bar.short_gib:8.2f} GiB"] if bar.short_gib >= 0.005 else []
    return "\n".join((f"[{drawn}] {bar.total_gib:.2f} GiB", *legend, *short))
