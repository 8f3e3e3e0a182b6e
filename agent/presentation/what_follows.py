"""What follows from an answer to a plan, from the incident as it is now: a plan may have been answered long ago."""

from datetime import datetime

from agent.core.incident.command import Command, impossible
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.presentation.standing import standing


def next_step(incident: Incident, plan: str, now: datetime) -> str:
    """Say what follows for a plan that was answered or ran out.

    Args:
        incident: The incident as it is now.
        plan: The plan's id, which may be an earlier one than the incident's present plan.
        now: The time, UTC.
    """
    present = incident.plan
    if incident.ended:
        unless = " unless somebody asks for one" if impossible(incident, Command.REPLAN) is None else ""
        return f"{standing(incident, now).says} {_ended_why(incident)}".rstrip() + f" No further plan comes{unless}."
    if present is not None and present.id != plan:
        asked = incident.phase is Phase.ASKED and now < present.expires_at
        newer = f"Plan {present.id} has taken its place"
        return f"{newer} and needs an answer." if asked else f"{newer}. {standing(incident, now).says}"
    return standing(incident, now).says


def _ended_why(incident: Incident) -> str:
    why = incident.ended_why.rstrip(".")
    return f"Reason: {why}." if why else ""
