"""Where policy says automatic, the executor itself decides, and signs "by policy"."""

from agent.core.decision.decision import Answer, Channel
from agent.core.incident.phase import Phase
from agent.errors import PolicyRefused, StateConflict
from agent.ports.stage_context import StageContext
from agent.stages.plan_to_decision import Word, plan_to_decision
from agent.stages.shared.approval import is_automatic
from agent.stages.shared.effects import kill_switch_says
from agent.stages.shared.outcome import StageOutcome

NAME = "policy"


def auto_approve(context: StageContext, incident_id: str) -> StageOutcome:
    """Approve the plan that an incident asks about, if policy as we read it says so; else leave it to people.

    The order says nothing but the incident: plan, policy and kill switch are looked at here.

    Raises:
        DependencyFailed: A store did not answer; nothing was decided, deliver again.
    """
    incident = context.store.load(incident_id)
    plan = incident.plan
    if incident.phase is not Phase.ASKED or plan is None or not is_automatic(context, incident, plan):
        return StageOutcome.WAITING
    if kill_switch_says(context):
        return StageOutcome.WAITING
    word = Word(
        plan=plan.id,
        answer=Answer.APPROVE,
        who=NAME,
        channel=Channel.POLICY,
        verified=True,
        plan_digest=plan.digest,
    )
    try:
        plan_to_decision(context, word)
    except (PolicyRefused, StateConflict):
        return StageOutcome.WAITING  # a person was faster, or the plan is gone
    return StageOutcome.MOVED
