"""What was tried for which cause, kept on the incident so that nothing is tried a third time."""

from datetime import datetime

from agent.core.incident import Incident, Remedy


def tried(incident: Incident, now: datetime) -> tuple[Remedy, ...]:
    """Return the remedies with the present plan added, as it ended."""
    plan = incident.plan
    if plan is None:
        return incident.remedies
    verdict = incident.verification.verdict if incident.verification else None
    ended = verdict.value if verdict is not None else incident.phase.value
    remedy = Remedy(proposal=plan.proposal, cause=plan.cause, ended=ended, at=now, incident=incident.id)
    if any(r.proposal == remedy.proposal and r.incident == incident.id and r.at == now for r in incident.remedies):
        return incident.remedies
    return (*incident.remedies, remedy)[-32:]
