"""A heat map of a sweep as SVG: throughput by context and concurrency, and what was not measured and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.presentation.sweep.drawing import line, safe, svg, words

_LEFT, _TOP, _WIDE, _HIGH = 92, 60, 66, 38
_DARK: Final = 0.55
"""From this opacity on the figure stands on the colour, not on the page."""


@dataclass(frozen=True, kw_only=True)
class Square:
    """One cell of the map.

    Attributes:
        value: Output tokens per second; None where nothing was measured.
        text: What stands in it.
        tooltip: What shows under the pointer.
    """

    value: float | None
    text: str
    tooltip: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One context length.

    Attributes:
        name: Beside the row.
        squares: One per concurrency; None where none was planned.
        predicted: Requests that run at once, as predicted; None where nothing was.
        measured: The same as measured.
    """

    name: str
    squares: tuple[Square | None, ...]
    predicted: float | None
    measured: float | None


def heat_map(loads: Sequence[int], rows: Sequence[Row]) -> str:
    """Draw the map; a line at the right of a square says that beyond it requests wait.

    Args:
        loads: The concurrencies, rising: one column each.
        rows: One per context length.
    """
    width, height = max(_LEFT + _WIDE * len(loads) + 16, 480), _TOP + _HIGH * len(rows) + 46
    best = max((s.value for row in rows for s in row.squares if s is not None and s.value is not None), default=0.0)
    inside = "".join(
        (
            words(12, 20, "Throughput by context and concurrency (output tokens/s)", kind="h"),
            *_legend(),
            *_columns(loads, len(rows)),
        )
    )
    inside += "".join(part for number, row in enumerate(rows) for part in _row(row, number, loads, best))
    return svg(width, height, title="Output tokens per second by context length and concurrent requests", inside=inside)


def _legend() -> Iterator[str]:
    yield line(16, 31, 16, 45, kind="q", dash="2 3", thick=2)
    yield words(24, 42, "beyond: requests wait (predicted)", kind="qt")
    yield line(236, 31, 236, 45, kind="k", thick=2)
    yield words(244, 42, "beyond: requests wait (measured)", kind="kt")


def _columns(loads: Sequence[int], rows: int) -> Iterator[str]:
    bottom = _TOP + _HIGH * rows
    for number, load in enumerate(loads):
        yield words(_LEFT + _WIDE * (number + 0.5), bottom + 16, f"{load}", kind="d", anchor="middle")
    yield words(_LEFT, bottom + 36, "concurrent requests", kind="d")


def _row(row: Row, number: int, loads: Sequence[int], best: float) -> Iterator[str]:
    top = _TOP + _HIGH * number
    yield words(_LEFT - 8, top + _HIGH / 2 + 4, row.name, kind="d", anchor="end")
    for column, square in enumerate(row.squares):
        if square is not None:
            yield _square(square, _LEFT + _WIDE * column, top, best)
    for at, kind, dash in ((row.predicted, "q", "2 3"), (row.measured, "k", "")):
        if at is not None and loads[0] <= at < loads[-1]:
            x = _LEFT + _WIDE * _edge(at, loads) + (1.5 if kind == "k" else -1.5)
            yield line(x, top, x, top + _HIGH - 2, kind=kind, dash=dash, thick=3)


def _edge(at: float, loads: Sequence[int]) -> float:
    """How many columns lie within a level: whole where it is one of them, between two edges where it is between."""
    for number, (one, other) in enumerate(pairwise(loads), start=1):
        if one <= at < other:
            return number + 0.5 * (at - one) / (other - one) if at > one else number
    return 0.0


def _square(square: Square, x: float, y: float, best: float) -> str:
    share = 0.1 + 0.8 * square.value / best if square.value is not None and best > 0 else 0.0
    place = f'x="{x + 1:.1f}" y="{y:.1f}" width="{_WIDE - 2}" height="{_HIGH - 2}" rx="4"'
    shape = f'<rect class="f0" {place} fill-opacity="{share:.2f}"/><rect class="g" {place} fill="none"/>'
    kind = "e" if square.value is None else "ink" if share >= _DARK else ""
    text = words(x + _WIDE / 2, y + _HIGH / 2 + 3, square.text, kind=kind, anchor="middle")
    return f"<g>{shape}{text}<title>{safe(square.tooltip)}</title></g>"
