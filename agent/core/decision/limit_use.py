"""How much of the limits on changes is used: which changes count against each, and when the next one may begin."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from pydantic import AwareDatetime

from agent.core.decision.policy import Policy
from agent.core.decision.selector import selects
from agent.core.value import Value

HOUR: Final = timedelta(hours=1)
FARTHEST_BACK: Final = timedelta(days=30)
"""The longest window that a policy can name."""


class LimitUse(Value):
    """One limit of the policy with the changes that count against it now.

    Attributes:
        name: Of the limit in the policy; empty for those over all services.
        service: The one service that it is about; empty for a limit of several services together.
        most: How many changes may begin within ``window_s`` seconds.
        made: When those that count began, oldest first.
        free_at: When the next change may begin; None for at once. An hour from now where none may.
    """

    name: str
    service: str
    most: int
    window_s: float
    made: tuple[AwareDatetime, ...]
    free_at: AwareDatetime | None


def limit_uses(
    policy: Policy,
    service: str,
    *,
    of_service: Sequence[datetime],
    of_all: Sequence[tuple[datetime, str]],
    now: datetime,
) -> tuple[LimitUse, ...]:
    """Return every limit that a change of a service keeps, with what is used of it.

    Args:
        policy: In force.
        service: What would be changed.
        of_service: When changes of this service began, at least within :func:`longest_window`.
        of_all: When changes of any service began, and of which, at least in the last hour.
        now: The time.
    """
    groups = policy.limits_of(service)
    windows = [("", policy.change_window_s)]
    windows += [(g.name, g.change_window_s) for g in groups if g.change_window_s is not None]
    hourly = [("", policy.changes_per_hour, [at for at, _ in of_all])]
    for group in groups:
        if group.changes_per_hour is not None:
            own = [at for at, name in of_all if selects(group.services, name)]
            hourly.append((group.name, group.changes_per_hour, own))
    waits = [(name, timedelta(seconds=seconds)) for name, seconds in windows]
    return (
        *(_use(name, service, 1, window=window, changes=of_service, now=now) for name, window in waits),
        *(_use(name, "", most, window=HOUR, changes=changes, now=now) for name, most, changes in hourly),
    )


def longest_window(policy: Policy, service: str) -> timedelta:
    """Return how far back changes count for a service."""
    windows = [policy.change_window_s, *(m.change_window_s or 0 for m in policy.limits_of(service))]
    return max(HOUR, timedelta(seconds=max(windows)))


def next_slot(uses: Sequence[LimitUse]) -> datetime | None:
    """Return when a change may begin that keeps all of these limits; None for at once."""
    return max((use.free_at for use in uses if use.free_at is not None), default=None)


def _use(
    name: str, service: str, most: int, *, window: timedelta, changes: Sequence[datetime], now: datetime
) -> LimitUse:
    made = tuple(sorted(at for at in changes if at + window > now))
    free_at = now + window if most <= 0 else made[-most] + window if len(made) >= most else None
    return LimitUse(name=name, service=service, most=most, window_s=window.total_seconds(), made=made, free_at=free_at)
