"""Whether this person may answer this plan, and if not, why: what the deciding stage itself says, asked beforehand."""

from agent.core.decision.decision import Channel, Choice, Person
from agent.core.decision.freeze import FrozenSpan
from agent.core.incident.incident import Incident
from agent.core.plan.plan import Plan
from agent.ports.stage_context import StageContext
from agent.presentation.freeze_text import refusal_text
from agent.stages.shared import approval
from agent.stages.shared.freezes import stopping_freezes


def may_not_decide(
    context: StageContext,
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
    return approval.refusal_of_decider(context, plan, answer=answer, person=person, asked_through=asked_through)


def may_not_approve(context: StageContext, person: Person, incident: Incident, plan: Plan) -> str:
    """Return why this person may reject but not approve, in sentences, or nothing."""
    if only_replayed := _only_replayed(incident, plan):
        return only_replayed
    barred = may_not_decide(context, person, plan, answer=Choice.APPROVE, asked_through=_asked_through(incident))
    if barred:
        return f"{barred}. Ask somebody else."
    if incident.approvals is not None and incident.approvals.over_budget:
        return f"It would break a budget: {incident.approvals.over_budget}."
    if has_approved(context, person, incident):
        return "You approved this plan. Another person has to approve it too."
    frozen = open_freezes(context, incident, plan)
    return f"The{refusal_text(frozen[0])[3:]}." if frozen else ""


def has_approved(context: StageContext, person: Person, incident: Incident) -> bool:
    """Whether an approval of this person stands beside which others are needed."""
    given = incident.approvals.given if incident.approvals is not None else ()
    if not person.verified:
        return bool(person.who) and any(not a.verified for a in given)
    approver = context.rules.policy.approver(person.channel, person.who)
    return approver is not None and any(a.verified and a.name == approver.name for a in given)


def open_freezes(context: StageContext, incident: Incident, plan: Plan) -> tuple[FrozenSpan, ...]:
    """Return the freeze windows that stop an approval now, and whose glass nobody broke for this plan."""
    given = incident.approvals.given if incident.approvals is not None else ()
    broken = {name for approval in given for name in approval.breaks}
    now = context.now_for(incident)
    return tuple(span for span in stopping_freezes(context, plan, now) if span.name not in broken)


def may_break_glass(context: StageContext, person: Person, incident: Incident, plan: Plan) -> bool:
    """Whether this person may approve in spite of the freeze windows that stop others, or say so of their approval."""
    policy = context.rules.policy
    approver = policy.approver(person.channel, person.who) if person.verified else None
    frozen = open_freezes(context, incident, plan)
    barred = may_not_decide(context, person, plan, answer=Choice.APPROVE, asked_through=_asked_through(incident))
    may = incident.may_change and not barred
    return bool(frozen) and may and all(policy.member(span.break_glass, approver) for span in frozen)


def _asked_through(incident: Incident) -> Channel | None:
    return incident.request.channel if incident.request is not None else None


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


NOT_PROVEN = (
    "this console is not on your machine alone, and that you can open it does not prove who you are; "
    "use the command line with a token"
)


def may_not_operate(context: StageContext, person: Person) -> str:
    """Return why this person may not turn the kill switch nor deliver a dead letter again, or nothing.

    The operator of this machine may; a verified person must stand among the approvers of the policy.
    """
    if not person.verified:
        return "" if context.local and person.who else NOT_PROVEN
    policy = context.rules.policy
    named = policy.approver(person.channel, person.who) is not None
    return "" if named else policy.bars(person.channel, person.who, "")
