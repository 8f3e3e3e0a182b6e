"""The numbers of a vLLM server that an operator looks at first: load, KV cache, tokens, and latencies."""

import math
import re
from collections.abc import Iterator
from typing import Final

from agent.core.service.metric_rules import ALIASES, metric_values, read_samples
from agent.core.value import Value

LATENCIES: Final[dict[str, tuple[str, ...]]] = {
    "time_to_first_token": ("vllm:time_to_first_token_seconds",),
    "inter_token_latency": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "end_to_end_latency": ("vllm:e2e_request_latency_seconds",),
    "queue_time": ("vllm:request_queue_time_seconds",),
}
"""Newest name first; read from vLLM 0.32.0's own /metrics, the older one from the documentation of 0.6 (2026-11-22)."""

_UNITS: Final = {
    "running": "requests",
    "waiting": "requests",
    "kv_usage": "share of the KV cache",
    "preemptions": "since the start",
    "prompted": "tokens since the start",
    "generated": "tokens since the start",
}
_FINISHED: Final = "vllm:request_success_total"
_HITS, _QUERIES = "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"
_BUCKET: Final = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)_bucket\{(?:[^}]*,)?le="([0-9.e+-]+|\+Inf)"[^}]*\} ([0-9.e+-]+)'
)
_QUANTILE: Final = 0.95


class MetricFigure(Value):
    """One number with the series that it was read from.

    Attributes:
        name: What it is.
        series: The server's own name of it.
        unit: What it counts.
    """

    name: str
    value: float
    unit: str
    series: str


def metric_summary(text: str) -> tuple[MetricFigure, ...]:
    """Return the numbers that matter, all engines together; what the server does not say is left out.

    Args:
        text: The body of /metrics; only numbers are taken from it, no label.
    """
    totals: dict[str, float] = {}
    for name, value in read_samples(text):
        totals[name] = totals.get(name, 0.0) + value
    values = metric_values(text)
    found = [
        MetricFigure(name=field, value=values[field], unit=unit, series=_first(ALIASES[field], totals))
        for field, unit in _UNITS.items()
        if field in values
    ]
    if _FINISHED in totals:
        found.append(MetricFigure(name="finished", value=totals[_FINISHED], unit="requests", series=_FINISHED))
    if totals.get(_QUERIES):
        rate = totals.get(_HITS, 0.0) / totals[_QUERIES]
        found.append(MetricFigure(name="prefix_cache_hit_rate", value=rate, unit="share of tokens", series=_HITS))
    return (*found, *_latencies(text, totals))


def _latencies(text: str, totals: dict[str, float]) -> Iterator[MetricFigure]:
    """Mean and 95th percentile of each latency that was observed at least once; the latter is a bucket's upper end."""
    buckets: dict[str, dict[float, float]] = {}
    for line in text.split("\n"):
        match = _BUCKET.match(line)
        if match is not None:
            row = buckets.setdefault(match[1], {})
            row[float(match[2])] = row.get(float(match[2]), 0.0) + float(match[3])
    for name, names in LATENCIES.items():
        series = _first(tuple(f"{each}_count" for each in names), totals).removesuffix("_count")
        count = totals.get(f"{series}_count", 0.0)
        if not count or f"{series}_sum" not in totals:
            continue
        mean = totals[f"{series}_sum"] / count
        yield MetricFigure(name=f"{name}_mean", value=mean, unit="s", series=series)
        reached = [end for end, number in sorted(buckets.get(series, {}).items()) if number >= _QUANTILE * count]
        if reached and math.isfinite(reached[0]):
            yield MetricFigure(name=f"{name}_p95_at_most", value=reached[0], unit="s", series=series)


def _first(names: tuple[str, ...], totals: dict[str, float]) -> str:
    return next((name for name in names if name in totals), names[0])
