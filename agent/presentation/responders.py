"""Who takes care of an incident, in one line for every screen."""

from agent.core.incident.incident import Incident


def responders_text(incident: Incident) -> str:
    """Return who acknowledged the incident and to whom it is assigned; empty where nobody did."""
    act = incident.acknowledged
    said = [f"acknowledged by {act.shown} at {act.at:%Y-%m-%d %H:%M} UTC"] if act is not None else []
    said += [f"assigned to {incident.assignee}"] if incident.assignee else []
    return "; ".join(said)
