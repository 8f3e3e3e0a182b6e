"""A plan is shown to people, who answer it until it expires."""

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.ports.bus import Topic
from agent.ports.stage_context import StageContext
from agent.stages.shared.approval import is_automatic
from agent.stages.shared.commit import message_for, save
from agent.stages.shared.outcome import StageOutcome


def ask(context: StageContext, incident: Incident) -> StageOutcome:
    """Show the plan to people and wait for one answer."""
    now = context.now_for(incident)
    plan = incident.require_plan()
    due = incident.model_request.wake_at(plan.expires_at) if incident.model_request is not None else plan.expires_at
    asked = incident.move(Phase.ASKED, now=now, due_at=due)
    also = (message_for(incident, Topic.DECISIONS, "auto"),) if is_automatic(context, incident, plan) else ()
    what = f"asked about plan {plan.id}, until {plan.expires_at:%H:%M:%S} UTC"
    save(context, asked, what, now=now, also=also)
    return StageOutcome.MOVED


def expire(context: StageContext, incident: Incident) -> StageOutcome:
    """Close a plan that nobody answered in time."""
    now = context.now_for(incident)
    plan = incident.require_plan()
    if now < plan.expires_at:
        return StageOutcome.WAITING
    save(context, incident.move(Phase.EXPIRED, now=now, due_at=now), f"plan {plan.id} expired unanswered", now=now)
    return StageOutcome.MOVED
