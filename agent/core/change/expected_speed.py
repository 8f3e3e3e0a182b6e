"""How fast a revision should be: what its owner needs makes a verdict, what the plan predicted is said beside it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from agent.core.change.startup_figures import bounds
from agent.core.change.verification import Check, Measurement

SLACK: Final = 0.8
"""Below this share of the predicted range's low end a speed is not within the prediction. Every healthy server on
record lies inside the range, the slowest at 1.25 of its low end (fit.speed, 2026-06); the rest covers one short answer
that is timed from outside. Assumed."""

WAY_S: Final = 1.0
"""Seconds that a first token may take beside the work of the model: connection, front end, queue. On record are some
0.05 s on Cloud Run with an L4, 0.1 s on an A100 of Container Apps and 0.3 s on a TPU VM (2026-06): three times the
slowest."""


def judge_by_need(speed: Measurement, need_tokens_per_s: float | None) -> Measurement:
    """Judge a measured speed by what the owner needs; without a measurement or a need it stays as it was.

    Args:
        speed: What the platform measured, tokens per second of one request.
        need_tokens_per_s: What one user must see at least.
    """
    if need_tokens_per_s is None or speed.value is None or speed.good is not None:
        return speed
    good = speed.value >= need_tokens_per_s
    return speed.with_(good=good, says=f"{speed.says}, {need_tokens_per_s:g} are needed")


def compare_with_prediction(speed: Measurement, report: Mapping[str, object] | None, *, at: datetime) -> Measurement:
    """Hold a measured speed against the fit report of the approved plan.

    Too slow is False, within or above is True; what was not predicted or not measured is None. A speed above the
    range harms nobody: the words say so.

    Args:
        speed: What the platform measured.
        report: With ``ranges.decode_tokens_per_s`` and ``ranges.first_token_s``, each low and high, where computed.
        at: When it was measured.
    """

    def said(says: str, *, good: bool | None) -> Measurement:
        return Measurement(
            check=Check.PREDICTION, good=good, says=says, value=speed.value, first_token_s=speed.first_token_s, at=at
        )

    rate = bounds(report or {}, "decode_tokens_per_s")
    if rate is None:
        return said("the plan predicted no speed", good=None)
    computed = f"{rate[0]:.3g} to {rate[1]:.3g} tokens/s were computed"
    if speed.value is None:
        return said(f"the speed was not measured; {computed}", good=None)
    late = _late(speed.first_token_s, bounds(report or {}, "first_token_s"))
    if speed.value < SLACK * rate[0]:
        return said(f"slower than predicted: {speed.value:.3g} tokens/s, {computed}{late}", good=False)
    if late:
        return said(f"{speed.value:.3g} tokens/s, {computed}{late}", good=False)
    if speed.value > rate[1]:
        return said(f"faster than predicted: {speed.value:.3g} tokens/s, {computed}", good=True)
    return said(f"as predicted: {speed.value:.3g} tokens/s, {computed}", good=True)


def _late(first_token_s: float | None, limits: tuple[float, float] | None) -> str:
    """Say that the first token came later than predicted, or nothing; a range that was not computed judges nothing."""
    if first_token_s is None or limits is None or first_token_s <= limits[1] + WAY_S:
        return ""
    return f"; first token after {first_token_s:.3g} s, {limits[1]:.3g} s were computed and {WAY_S:g} s for the way"
