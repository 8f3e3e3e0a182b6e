"""Whether this person may answer this plan, and if not, why: what the deciding stage itself says, asked beforehand."""

from agent.core.decision.decision import Channel, Choice
from agent.core.incident.incident import Incident
from agent.core.plan.plan import Plan
from agent.entrypoints.console.identity import Person
from agent.ports.stage_context import StageContext
from agent.stages.shared import approval


def may_not_decide(
    world: StageContext,
    person: Person,
    plan: Plan,
    *,
    answer: Choice = Choice.REJECT,
    asked_through: Channel | None = None,
) -> str:
    """Return why this person's word does not count for this plan, or nothing.

    The operator of this machine is shown as not verified. A verified person must stand among the approvers of the
    policy, with this service; an empty list allows nobody.
    """
    return approval.refusal_of_decider(
        world,
        plan,
        answer=answer,
        channel=person.channel,
        who=person.name,
        verified=person.verified,
        asked_through=asked_through,
    )


def may_not_approve(world: StageContext, person: Person, incident: Incident, plan: Plan) -> str:
    """Return why this person may reject but not approve, in sentences, or nothing."""
    if only_replayed := _only_replayed(incident, plan):
        return only_replayed
    asked_through = incident.request.channel if incident.request is not None else None
    barred = may_not_decide(world, person, plan, answer=Choice.APPROVE, asked_through=asked_through)
    return f"{barred}. Ask somebody else." if barred else ""


READ_ONLY = (
    "This console is not on your machine alone, so it only reads: that you can open it does not prove who you are. "
    "Answer in Slack, by signed webhook, or with a token: sre-agent approve PLAN, with DECIDE_URL set to this address."
)


def nobody_may_approve(incident: Incident, plan: Plan, *, by_token: bool) -> str:
    """Return why a reader whom a token may yet name cannot approve, in sentences, or nothing.

    Args:
        incident: The incident.
        plan: Its plan.
        by_token: Whether a token of the cluster can say who answers.
    """
    return READ_ONLY if not by_token else _only_replayed(incident, plan) or plan.unproved


def _only_replayed(incident: Incident, plan: Plan) -> str:
    if incident.may_change or plan.by_person:
        return ""
    return "This is a replay for analysis: it changes nothing. Start it with --live to be able to apply its plan."
