"""What is asked right before any effect: the kill switch and the limits; no answer means no."""

from datetime import datetime, timedelta

from agent.errors import SreError
from agent.ports.world import World


def kill_switch_says(world: World) -> str:
    """Return why no effect may start, or nothing; an unreadable switch counts as on."""
    try:
        switch = world.control_store().kill_switch()
    except SreError as error:
        return f"the kill switch could not be read: {error.why}"
    return (
        f"the kill switch is on (by {switch.by or 'somebody'}: {switch.why or 'no reason given'})" if switch.on else ""
    )


def room_at(world: World, service: str, now: datetime) -> datetime | None:
    """Return when a change of this service may start, or None for at once.

    Raises:
        DependencyFailed: The limits could not be read; nothing may start.
    """
    policy = world.knowledge.policy
    hour = timedelta(hours=1)
    window = timedelta(seconds=policy.change_window_s)
    limits = world.control_store().limits(service, now - max(hour, window))
    waits = [at + window for at in limits.service_changes if at + window > now]
    lately = sorted(at for at in limits.all_changes if at + hour > now)
    if policy.changes_per_hour <= 0:
        return now + hour
    if len(lately) >= policy.changes_per_hour:
        waits.append(lately[-policy.changes_per_hour] + hour)
    return max(waits, default=None)
