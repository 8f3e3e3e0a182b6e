"""Limits and budgets in sentences: what each allows, what is used of it, and when the next change may begin."""

from datetime import datetime

from agent.core.decision.limit_use import LimitUse

_HOUR_S = 3600


def limit_text(use: LimitUse, now: datetime) -> str:
    """Return one limit with what is used of it, in a sentence without a full stop.

    Args:
        use: The limit.
        now: The time, for the age of a change.
    """
    whose = f"{use.name}: " if use.name else ""
    said = f"{whose}{_allowed(use)}; {_made(use, now)}"
    if use.most <= 0:
        return f"{said}; no change may begin"
    return said if use.free_at is None else f"{said}; the next may begin at {use.free_at:%Y-%m-%d %H:%M:%S} UTC"


def _allowed(use: LimitUse) -> str:
    if use.service:
        return f"one change of {use.service} in {use.window_s:g} s"
    over = "" if use.name else " over all"
    return f"{use.most} an hour{over}" if use.window_s == _HOUR_S else f"{use.most} in {use.window_s:g} s{over}"


def _made(use: LimitUse, now: datetime) -> str:
    if not use.made:
        return "none made"
    ago_s = max(0.0, (now - use.made[-1]).total_seconds())
    return f"{len(use.made)} made, the last {_ago(ago_s)}"


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
