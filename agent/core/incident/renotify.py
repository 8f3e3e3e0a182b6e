"""When people are told once more of an incident that waits for them and that nobody has taken note of."""

from datetime import datetime, timedelta

from agent.core.incident.incident import Incident, Times
from agent.core.incident.phase import Phase
from agent.core.intake.signal import LIVE


def is_unattended(incident: Incident) -> bool:
    """Whether a live incident waits for a person and no person has touched it: nobody has it, voted or asked for more.

    A change that somebody asked for calls nobody while it waits for approval; where undoing it failed, it does.
    """
    waits = {Phase.ESCALATED} if incident.request is not None else {Phase.ASKED, Phase.ESCALATED}
    voted = incident.approvals is not None and bool(incident.approvals.given)
    seen = incident.acknowledged or incident.assignee or incident.replanned or incident.replan or voted
    return incident.run == LIVE and incident.phase in waits and not seen


def with_renotification(incident: Incident, times: Times, now: datetime) -> Incident:
    """Return the incident with the time at which people are told again; with none where nobody is to be told.

    Args:
        incident: Its new state; a time that it carries stands until that time has come.
        times: How long nobody may react, and how often people are told again.
        now: The time of this run.
    """
    if not is_unattended(incident) or incident.renotified >= times.renotify_times:
        return incident if incident.renotify_at is None else incident.with_(renotify_at=None)
    if incident.renotify_at is not None:
        return incident
    since = incident.phase_at if incident.renotified == 0 else max(now, incident.phase_at)
    return incident.with_(renotify_at=since + timedelta(seconds=times.renotify_s))
