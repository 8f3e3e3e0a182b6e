"""A line plot over concurrency as SVG: series, where requests wait as predicted and measured, and what failed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log2, log10
from typing import Final

from agent.presentation.sweep.drawing import line, powers, round_steps, svg, words

WIDTH: Final = 420
HEIGHT: Final = 300

_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 18, 58, 50
_DASHES: Final = ("", "6 4")
_WIDE: Final = 30
"""Above this ratio of the largest to the smallest value the axis is logarithmic."""

_NOTHING: Final = 1e-9
"""A smaller value is drawn as 0: nothing is measured to that."""

_CROWDED: Final = 26  # pixels that a label of the x axis takes


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line.

    Attributes:
        name: In the legend.
        points: Load and value, by load; a value of None leaves a gap.
    """

    name: str
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, kw_only=True)
class Knee:
    """Where requests begin to wait.

    Attributes:
        at: Concurrency.
        label: In the legend, such as ``8 measured``.
        measured: True where it was measured, False where it was predicted.
    """

    at: float
    label: str
    measured: bool


@dataclass(frozen=True, kw_only=True)
class LinePlot:
    """What is drawn.

    Attributes:
        title: What it shows.
        unit: Of the values.
        series: At most two.
        knees: Drawn where they lie within the measured loads.
        failed: Failed requests by load; 0 entries are not drawn.
        from_zero: The value axis begins at 0, whatever the values.
        across: What the loads are.
        knees_are: What the knees mean, in the legend before them.
    """

    title: str
    unit: str
    series: tuple[Series, ...]
    knees: tuple[Knee, ...] = ()
    failed: tuple[tuple[float, int], ...] = ()
    from_zero: bool = False
    across: str = "concurrent requests"
    knees_are: str = "wait from"


def line_plot(plot: LinePlot) -> str:
    """Draw a plot; both axes have their unit, and a plot without a value says so."""
    loads = sorted({load for series in plot.series for load, _ in series.points})
    values = [value for series in plot.series for _, value in series.points if value is not None and value >= 0]
    if not loads or not values:
        inside = words(WIDTH / 2, HEIGHT / 2, "nothing was measured", kind="d", anchor="middle")
    else:
        axes = _Axes(loads, values, from_zero=plot.from_zero)
        inside = "".join(
            (*axes.drawn(plot.unit, plot.across), *_knees(plot, axes), *_lines(plot, axes), *_failed(plot, axes))
        )
    head = words(12, 20, f"{plot.title} ({plot.unit})", kind="h") + _legend(plot)
    return svg(WIDTH, HEIGHT, title=_alternative_text(plot), inside=head + inside)


class _Axes:
    """Where a value lies on the drawing."""

    def __init__(self, loads: Sequence[float], values: Sequence[float], *, from_zero: bool) -> None:
        self.loads = loads
        above = [value for value in values if value > _NOTHING]
        self.logarithmic = bool(above) and not from_zero and max(above) / min(above) > _WIDE
        self.steps = powers(min(above), max(above)) if self.logarithmic else round_steps(max(above, default=1.0))

    def x(self, load: float) -> float:
        first, last = log2(self.loads[0]), log2(self.loads[-1])
        share = (log2(load) - first) / (last - first) if last > first else 0.5
        return _LEFT + 14 + share * (WIDTH - _LEFT - _RIGHT - 28)

    def y(self, value: float) -> float:
        low, high = self.steps[0], self.steps[-1]
        if self.logarithmic:
            value, low, high = log10(max(value, low)), log10(low), log10(high)
        return HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    def drawn(self, unit: str, across: str) -> Iterator[str]:
        right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
        for step in self.steps:
            yield line(_LEFT, self.y(step), right, self.y(step), kind="g")
            yield words(_LEFT - 6, self.y(step) + 4, f"{step:g}", kind="d", anchor="end")
        yield line(_LEFT, bottom, right, bottom, kind="a")
        free = 0.0
        for load in self.loads:
            if self.x(load) >= free:
                yield words(self.x(load), bottom + 16, _load(load), kind="d", anchor="middle")
                free = self.x(load) + _CROWDED
        scale = "log scale" if self.logarithmic else "from 0"
        yield words(_LEFT, HEIGHT - 8, f"{across} (log scale); {unit}, {scale}", kind="d")


def _lines(plot: LinePlot, axes: _Axes) -> Iterator[str]:
    for number, series in enumerate(plot.series[:2]):
        for run in _unbroken(series.points):
            path = " ".join(f"{axes.x(load):.1f},{axes.y(value):.1f}" for load, value in run)
            dash = f' stroke-dasharray="{_DASHES[number]}"' if _DASHES[number] else ""
            yield f'<polyline class="s{number}" stroke-width="2" points="{path}"{dash}/>'
            for load, value in run:
                yield _mark(number, axes.x(load), axes.y(value), f"{series.name}: {value:.4g} at {_load(load)}")


def _load(load: float) -> str:
    """A concurrency whole, a rate with three digits."""
    return f"{load}" if isinstance(load, int) else f"{load:.3g}"


def _unbroken(points: Iterable[tuple[float, float | None]]) -> Iterator[list[tuple[float, float]]]:
    """The points between two gaps."""
    run: list[tuple[float, float]] = []
    for load, value in points:
        if value is not None:
            run.append((load, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _mark(number: int, x: float, y: float, tooltip: str) -> str:
    """A circle for the first series, a square for the second; its value shows under the pointer."""
    title = f"<title>{tooltip}</title>"
    if number == 0:
        return f'<circle class="f0" cx="{x:.1f}" cy="{y:.1f}" r="3.5">{title}</circle>'
    return f'<rect class="f1" x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7">{title}</rect>'


def _knees(plot: LinePlot, axes: _Axes) -> Iterator[str]:
    for knee in plot.knees:
        if axes.loads[0] <= knee.at <= axes.loads[-1]:
            x = axes.x(knee.at) + (1.5 if knee.measured else -1.5)  # one beside the other where they agree
            kind, dash = ("k", "") if knee.measured else ("q", "2 3")
            yield line(x, _TOP, x, HEIGHT - _BOTTOM, kind=kind, dash=dash, thick=2)


def _failed(plot: LinePlot, axes: _Axes) -> Iterator[str]:
    for load, count in plot.failed:
        if count and load in axes.loads:
            yield words(axes.x(load), HEIGHT - _BOTTOM + 29, f"{count} failed", kind="e", anchor="middle")


def _legend(plot: LinePlot) -> str:
    """A row of keys below the title."""
    drawn, x = [], 12.0
    for number, series in enumerate(plot.series[:2]):
        if len(plot.series) > 1:
            drawn.append(line(x, 38, x + 22, 38, kind=f"s{number}", dash=_DASHES[number], thick=2))
            drawn.append(words(x + 28, 42, series.name))
            x += 36 + 7 * len(series.name)
    if plot.knees:
        drawn.append(words(x, 42, plot.knees_are, kind="d"))
        x += 12 + 6 * len(plot.knees_are)
    for knee in plot.knees:
        kind, dash = ("k", "") if knee.measured else ("q", "2 3")
        drawn.append(line(x + 4, 31, x + 4, 45, kind=kind, dash=dash, thick=2))
        drawn.append(words(x + 12, 42, knee.label, kind="kt" if knee.measured else "qt"))
        x += 20 + 6.2 * len(knee.label)
    return "".join(drawn)


def _alternative_text(plot: LinePlot) -> str:
    """The plot in one sentence, for those who cannot see it."""
    ends = [
        f"{series.name} {known[0][1]:.3g} at {_load(known[0][0])} to {known[-1][1]:.3g} at {_load(known[-1][0])}"
        for series in plot.series
        if (known := [(load, value) for load, value in series.points if value is not None])
    ]
    return f"{plot.title}, {plot.unit}: {'; '.join(ends) or 'nothing was measured'}"
