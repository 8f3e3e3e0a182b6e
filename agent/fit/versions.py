"""A prediction for an unspecified vLLM version: the newest one's figures, with ranges over all known versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.fit.bounds import Bounds
from agent.fit.report import FitReason, FitReport


def over_versions(report: FitReport, others: Sequence[tuple[str, FitReport]]) -> FitReport:
    """Widen the ranges of what a version prints; verdict and best estimates stay the newest version's.

    Args:
        report: The newest version's prediction.
        others: (version, prediction) of every version that may be meant, oldest first; those that refuse the model are
            left out.

    Returns:
        The report with wider ranges for weights, pool, blocks, tokens, capacity and concurrency, an assumption that
        says so, and the versions whose verdict differs.
    """
    able = [(version, other) for version, other in others if other.reason is not FitReason.UNSUPPORTED]
    differing = tuple(version for version, other in able if other.fits is not report.fits)
    oldest = others[0][0] if others else "the newest known"
    note = f"vLLM's version was not given: the newest known; ranges of printed figures span {oldest} and later"
    seen = [report, *(other for _, other in able)]
    return replace(
        report,
        weights_bytes=_span([each.weights_bytes for each in seen]),
        kv_cache_bytes=_span([each.kv_cache_bytes for each in seen]),
        num_gpu_blocks=_span([each.num_gpu_blocks for each in seen]),
        kv_tokens=_span([each.kv_tokens for each in seen]),
        kv_capacity_tokens=_span([each.kv_capacity_tokens for each in seen]),
        max_concurrency=_concurrency([each.max_concurrency for each in seen]),
        assumptions=(*report.assumptions, note),
        differs_under=differing,
    )


def _span(values: Sequence[Bounds | None]) -> Bounds | None:
    first, known = values[0], [value for value in values if value is not None]
    if first is None:
        return None
    return Bounds(low=min(value.low for value in known), best=first.best, high=max(value.high for value in known))


def _concurrency(values: Sequence[tuple[float, float, float] | None]) -> tuple[float, float, float] | None:
    first, known = values[0], [value for value in values if value is not None]
    if first is None:
        return None
    return min(value[0] for value in known), first[1], max(value[2] for value in known)
