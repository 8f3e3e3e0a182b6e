"""Prometheus text format: name and value of each sample of /metrics."""

import math
import re
from collections.abc import Iterator

# Labels hold quoted text, and that holds anything: braces, blanks, escaped quotes. Possessive, so that time is linear.
_SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*+)[ \t]*+(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*+")*+\})?+[ \t]*+([0-9.eE+-]++)(?=[ \t\r]|$)'
)
"""https://prometheus.io/docs/instrumenting/exposition_formats (2026-11-21)"""


def samples(text: str) -> Iterator[tuple[str, float]]:
    """Return the samples whose value is a finite number, in order; lines that are none are passed over."""
    for line in text.split("\n"):  # splitlines also splits at signs that a label may hold
        match = _SAMPLE.match(line)
        try:
            value = float(match[2]) if match else math.nan
        except ValueError:
            continue
        if match and math.isfinite(value):
            yield match[1], value
