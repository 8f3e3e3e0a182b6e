"""A request that did not come about is closed, with the reason; no plan of ours follows."""

from agent.core.decision.decision import NO_REASON
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.ports.stage_context import StageContext
from agent.stages.shared.commit import save
from agent.stages.shared.outcome import StageOutcome


def close_request(context: StageContext, incident: Incident) -> StageOutcome:
    """Close a request that was refused, rejected, withdrawn or rolled back, or that nobody answered."""
    now = context.now_for(incident)
    why = _why(incident)
    save(context, incident.move(Phase.CLOSED, now=now, due_at=None, ended_why=why), f"closed: {why}", now=now)
    return StageOutcome.MOVED


def _why(incident: Incident) -> str:
    decision = incident.decision
    if incident.phase is Phase.REJECTED and decision is not None:
        return f"{decision.shown} rejected it: {decision.why or NO_REASON}"
    if incident.phase is Phase.EXPIRED:
        return "nobody answered in time"
    if incident.phase is Phase.ROLLED_BACK and incident.roll_back is not None:
        by = incident.roll_back.by
        return f"{by.shown} rolled it back: {by.why}; {incident.ended_why}"
    if incident.phase is Phase.ROLLED_BACK and incident.verification is not None and incident.verification.why:
        return f"{incident.verification.why}; {incident.ended_why}"
    return incident.ended_why or "it did not come about"
