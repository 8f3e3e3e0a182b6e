"""Where policy says automatic, the executor itself decides, and signs "by policy"."""

from agent.core.decision import Answer, Channel
from agent.core.phase import Phase
from agent.errors import PolicyRefused, StateConflict
from agent.ports.world import World
from agent.stages.approval import is_automatic
from agent.stages.effects import kill_switch_says
from agent.stages.plan_to_decision import Word, plan_to_decision
from agent.stages.reason import Did

NAME = "policy"


def decide_by_policy(world: World, incident_id: str) -> Did:
    """Approve the plan that an incident asks about, if policy as we read it says so; else leave it to people.

    The order says nothing but the incident: plan, policy and kill switch are looked at here.

    Raises:
        DependencyFailed: A store did not answer; nothing was decided, deliver again.
    """
    incident = world.store.load(incident_id)
    plan = incident.plan
    if incident.phase is not Phase.ASKED or plan is None or not is_automatic(world, incident, plan):
        return Did.WAITING
    if kill_switch_says(world):
        return Did.WAITING
    word = Word(
        plan=plan.id,
        answer=Answer.APPROVE,
        who=NAME,
        channel=Channel.POLICY,
        verified=True,
        plan_digest=plan.digest,
    )
    try:
        plan_to_decision(world, word)
    except (PolicyRefused, StateConflict):
        return Did.WAITING  # a person was faster, or the plan is gone
    return Did.MOVED
