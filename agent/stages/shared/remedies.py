"""What was tried for which cause, kept on the incident so that nothing is tried a third time."""

from datetime import datetime

from agent.core.change.execution import Change, EffectKind, present_change, was_not_applied
from agent.core.incident.incident import TAKEN_BACK, Incident, Remedy
from agent.core.incident.phase import Phase


def tried_remedies(incident: Incident, now: datetime) -> tuple[Remedy, ...]:
    """Return the remedies with the present plan added, as it ended; one that was never applied was refused.

    A change that a person asked for is no remedy of anything.
    """
    plan = incident.plan
    if plan is None or incident.request is not None:
        return incident.remedies
    verdict = incident.verification.verdict if incident.verification else None
    ended = verdict.value if verdict is not None else incident.phase.value
    if incident.roll_back is not None:
        ended = TAKEN_BACK
    if _never_made(incident):
        ended = Phase.REFUSED.value
    change = present_change(incident.execution)
    applied = change is not Change.NONE
    remedy = Remedy(
        proposal=plan.proposal,
        cause=plan.cause,
        ended=ended,
        at=now,
        incident=incident.id,
        applied=applied,
        restored=change is Change.PUT_BACK if applied else None,
    )
    if any(r.proposal == remedy.proposal and r.incident == incident.id and r.at == now for r in incident.remedies):
        return incident.remedies
    return (*incident.remedies, remedy)[-32:]


def _never_made(incident: Incident) -> bool:
    """Whether the change was given up before the platform was called, so that nothing is known of the remedy."""
    applied = incident.execution.effect(EffectKind.APPLY) if incident.execution is not None else None
    return applied is not None and was_not_applied(applied)
