"""When people are told once more of an incident that waits for them and that nobody has taken note of."""

from datetime import datetime, timedelta

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.incident.times import Times
from agent.core.intake.signal import LIVE


def is_unattended(incident: Incident) -> bool:
    """Whether a live incident waits for a person and nobody has it, votes on its plan or has just asked for another.

    A change that somebody asked for calls nobody while it waits for approval; where undoing it failed, it does. Votes
    on a plan that is over say nothing of who looks at the incident now.
    """
    waits = {Phase.ESCALATED} if incident.request is not None else {Phase.ASKED, Phase.ESCALATED}
    votes = incident.approvals.given if incident.approvals is not None and incident.phase is Phase.ASKED else ()
    seen = incident.acknowledged or incident.assignee or incident.replan or votes
    return incident.run == LIVE and incident.phase in waits and not seen


def waits_in(incident: Incident) -> Phase | None:
    """Return the phase in which it waits for a person: ASKED about a plan, or ESCALATED with nobody on it yet."""
    waits = incident.phase is Phase.ASKED or (incident.phase is Phase.ESCALATED and is_unattended(incident))
    return incident.phase if waits else None


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
    return incident.with_(renotify_at=max(now, incident.phase_at) + timedelta(seconds=times.renotify_s))
