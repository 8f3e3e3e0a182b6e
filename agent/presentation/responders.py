"""Who takes care of an incident, in one line for every screen."""

from agent.core.incident.incident import Incident
from agent.presentation.standing import task_holder


def responders_text(incident: Incident) -> str:
    """Return who acknowledged the incident, to whom it is assigned and who has its task; or when people are reminded.

    Empty where none of it is so.
    """
    if incident.renotify_at is not None:
        return f"not acknowledged; reminder at {incident.renotify_at:%H:%M} UTC"
    act = incident.acknowledged
    said = [f"acknowledged by {act.shown} at {act.at:%Y-%m-%d %H:%M} UTC"] if act is not None else []
    said += [f"assigned to {incident.assignee}"] if incident.assignee else []
    said += [f"task taken on by {holder}"] if (holder := task_holder(incident)) else []
    return "; ".join(said)


def owner_text(owner: str) -> str:
    """Return an owner of services.toml for people, such as ``#llm (slack)``."""
    channel, _, place = owner.partition(":")
    return f"{place} ({channel})" if place else channel
