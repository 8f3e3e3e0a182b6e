"""Whether this person may answer this plan, and if not, why: what the deciding stage itself says, asked beforehand."""

from agent.core.decision.decision import Channel, Choice
from agent.core.incident.incident import Incident
from agent.core.plan.plan import Plan
from agent.entrypoints.console.identity import Person
from agent.ports.stage_context import StageContext
from agent.stages.shared import approval


def may_not_decide(world: StageContext, person: Person, plan: Plan, *, answer: Choice = Choice.REJECT) -> str:
    """Return why this person's word does not count for this plan, or nothing.

    The operator of this machine is shown as not verified. A verified person must stand among the approvers of the
    policy, with this service; an empty list allows nobody.
    """
    return approval.refusal_of_decider(
        world, plan, answer=answer, channel=Channel.CONSOLE, who=person.name, verified=person.verified
    )


def may_not_approve(world: StageContext, person: Person, incident: Incident, plan: Plan) -> str:
    """Return why this person may reject but not approve, in sentences, or nothing."""
    if not incident.may_change and not plan.by_person:
        return "This is a replay for analysis: it changes nothing. Start it with --live to be able to apply its plan."
    barred = may_not_decide(world, person, plan, answer=Choice.APPROVE)
    return f"{barred}. Ask somebody else." if barred else ""
