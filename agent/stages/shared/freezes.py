"""Freeze windows: asked when somebody approves, and again by the executor before a change begins."""

from datetime import datetime

from agent.core.decision.approvals import stops_automatic
from agent.core.decision.decision import Channel, Choice, Decision
from agent.core.decision.freeze import FrozenSpan
from agent.core.plan.plan import Plan
from agent.errors import PolicyRefused
from agent.ports.clock import machine_time
from agent.ports.stage_context import StageContext
from agent.presentation.freeze_text import refusal_text
from agent.stages.shared.decision_request import DecisionRequest


def broken_freezes(
    context: StageContext, plan: Plan, request: DecisionRequest, now: datetime, *, spared: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return the names of the freeze windows in spite of which an approval is given; nobody needs one to reject.

    Args:
        context: The policy.
        plan: What would be approved.
        request: What was said.
        now: When, UTC.
        spared: Windows whose glass somebody else broke for this plan.

    Raises:
        PolicyRefused: A window stops it, and this person may not break its glass, or did not say that they do.
    """
    if request.answer is not Choice.APPROVE:
        return ()
    if request.by.channel is Channel.POLICY:
        _check_automatic(context, plan, now)
        return ()
    spans = [span for span in stopping_freezes(context, plan, now) if span.name not in spared]
    for span in spans:
        _check_breaks(context, plan, request, span)
    if spans and not request.why.strip():
        raise undecided(plan, "the glass is broken for a reason only", "say it: --why TEXT")
    return tuple(span.name for span in spans)


def freezes_at(context: StageContext, service: str, at: datetime) -> tuple[FrozenSpan, ...]:
    """Return the freeze windows of a service at a moment, and now by the machine's clock.

    Whoever writes the incident database can move ``at`` forward, to where a window is over.
    """
    policy = context.rules.policy
    later, here = policy.frozen(service, at), policy.frozen(service, min(at, machine_time(context.clock)))
    names = {span.name for span in later}
    return (*later, *(span for span in here if span.name not in names))


def stopping_freezes(context: StageContext, plan: Plan, at: datetime) -> tuple[FrozenSpan, ...]:
    """Return the freeze windows that stop a person's approval of a plan at a moment; none stops a person's own task."""
    if plan.by_person:
        return ()
    asked_for = plan.asked_by is not None
    frozen = freezes_at(context, plan.target.service, at)
    return tuple(span for span in frozen if span.stops_change(asked_for=asked_for))


def check_not_frozen(context: StageContext, plan: Plan, decision: Decision, now: datetime) -> None:
    """Refuse where a freeze window stops the change that is about to begin; what has begun goes on.

    Raises:
        PolicyRefused: One does, and its glass was not broken.
    """
    if decision.channel is Channel.POLICY:
        _check_automatic(context, plan, now)
    for span in stopping_freezes(context, plan, now):
        if span.name not in decision.breaks:
            hint = f"wait until it is over, or ask {span.owner}"
            raise PolicyRefused(f"plan {plan.id!r} was not applied", why=refusal_text(span), hint=hint)


def _check_automatic(context: StageContext, plan: Plan, now: datetime) -> None:
    spans = freezes_at(context, plan.target.service, now)
    if not plan.by_person and stops_automatic(spans, asked_for=plan.asked_by is not None):
        raise undecided(plan, f"without a person's approval, {refusal_text(spans[0])}", "a person may approve it")


def _check_breaks(context: StageContext, plan: Plan, request: DecisionRequest, span: FrozenSpan) -> None:
    if not request.break_glass:
        how = f"; or one of {span.break_glass}: sre-agent approve {plan.id} --break-glass --why TEXT"
        hint = f"wait until it is over, or ask {span.owner}" + (how if span.break_glass else "")
        raise undecided(plan, refusal_text(span), hint)
    approver = context.rules.policy.approver(request.by.channel, request.by.who) if request.by.verified else None
    if not context.rules.policy.member(span.break_glass, approver):
        who = approver.name if approver is not None else request.by.who
        may = f"only {span.break_glass} may" if span.break_glass else "nobody may"
        why = f"{refusal_text(span)}; {who!r} may not break its glass, {may}"
        raise undecided(plan, why, f"wait until it is over, or ask {span.owner}")


def undecided(plan: Plan, why: str, hint: str) -> PolicyRefused:
    """Return the refusal of an answer to a plan."""
    return PolicyRefused(f"plan {plan.id!r} was not decided", why=why, hint=hint)
