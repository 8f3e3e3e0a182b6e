"""What the plots of a sweep share: escaped text, colours for light and dark, and round numbers on an axis."""

from html import escape
from math import ceil, floor, log10
from typing import Final

from agent.core.text.safe_text import plain, shortened

_LABEL: Final = 80

STYLE: Final = (
    "<style>.t{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1d1c1a}.d{fill:#5c5852}.h{font-size:13px;"
    "font-weight:650}.g{stroke:#d9d5ce}.a{stroke:#5c5852}.s0{stroke:#1a56a8;fill:none}.f0{fill:#1a56a8}"
    ".s1{stroke:#b35309;fill:none}.f1{fill:#b35309}.k{stroke:#1d6a3a}.kt{fill:#1d6a3a}.q{stroke:#8a5fb0}"
    ".qt{fill:#7a4aa3}.e{fill:#a4222b}.ink{fill:#fff}"
    "@media(prefers-color-scheme:dark){.t{fill:#e9e7e3}.d{fill:#a7a39c}.g{stroke:#363b43}.a{stroke:#a7a39c}"
    ".s0{stroke:#8fbcf7}.f0{fill:#8fbcf7}.s1{stroke:#f0a860}.f1{fill:#f0a860}.k{stroke:#86d9a3}.kt{fill:#86d9a3}"
    ".q{stroke:#c9a6e8}.qt{fill:#c9a6e8}.e{fill:#ff9c9c}.ink{fill:#14161a}}</style>"
)
"""The colours of every plot; each series has a dash and a mark of its own beside its colour."""


def safe(text: str) -> str:
    """Return text for XML and HTML, on one line and bounded; whoever wrote it, it is shown and does nothing."""
    return escape(shortened(plain(text).replace("\n", " "), _LABEL))


def svg(width: int, height: int, *, title: str, inside: str) -> str:
    """Return a drawing that stands alone: its own colours, a title for readers that cannot see it, no script."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">{STYLE}<title>{safe(title)}</title>{inside}</svg>'
    )


def words(x: float, y: float, text: str, *, kind: str = "t", anchor: str = "start") -> str:
    """Return a text at a place.

    Args:
        x: From the left, pixels.
        y: Of its base line, from the top, pixels.
        text: Anything; it is escaped here.
        kind: Classes beside ``t``.
        anchor: ``start``, ``middle`` or ``end``.
    """
    return f'<text class="t {kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe(text)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, *, kind: str, dash: str = "", thick: float = 1) -> str:
    """Return a straight line; ``dash`` as SVG has it, empty for a whole one."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends} stroke-width="{thick:g}"{dashed}/>'


def round_steps(highest: float) -> tuple[float, ...]:
    """Return round numbers from 0 to just above ``highest`` > 0: some four steps of 1, 2 or 5 times a power of ten."""
    raw = highest / 4
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    return tuple(round(number * step, 12) for number in range(ceil(highest / step - 1e-9) + 1))


def powers(lowest: float, highest: float) -> tuple[float, ...]:
    """Return 1, 2 and 5 times each power of ten from just below ``lowest`` to just above ``highest``, both above 0.

    Beyond two powers of ten only the powers themselves are returned.
    """
    first, last = floor(log10(lowest)), ceil(log10(highest))
    factors = (1,) if last - first > 2 else (1, 2, 5)
    steps = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    below = max((step for step in steps if step <= lowest), default=steps[0])
    above = min((step for step in steps if step >= highest), default=steps[-1])
    return tuple(step for step in steps if below <= step <= above)
