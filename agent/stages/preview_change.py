"""What a requested change would be: its plan, and who may approve it; nothing is stored."""

from agent.core.change.request import ASKER_CHARS, WHY_CHARS, ChangeRequest, request_id, request_key
from agent.core.decision.self_approval import may_approve_own
from agent.core.plan.action import NO_SERVICE
from agent.core.plan.plan import Plan
from agent.core.service.serving import Live
from agent.core.value import Value
from agent.ports.stage_context import StageContext
from agent.presentation.policy_explanation import Row, Subject, explain
from agent.stages.plan_request import requested_plan
from agent.stages.request_change import ChangeAsked, requested_incident
from agent.stages.shared.approved_plan import described
from agent.stages.shared.budget import budget_refusal


class ChangePreview(Value):
    """The answer to a dry run.

    Attributes:
        plan: With difference, proof, cost, speed and undo; its id is none that could be approved.
        approvers: Whom policy lets decide about the service, without who asks.
        self_approval: Whether who asks may approve it too, because this is one machine whose names nobody proves.
        policy: What the policy says of it, row by row.
        decode_tokens_per_s_now: Computed for the service as it is; the plan says it for afterwards.
    """

    plan: Plan
    approvers: tuple[str, ...]
    self_approval: bool
    policy: tuple[Row, ...]
    decode_tokens_per_s_now: float | None = None


def preview_change(context: StageContext, asked: ChangeAsked) -> ChangePreview:
    """Work out what people would be asked, with the credentials of whoever runs this.

    Args:
        context: Of an owner that may look at services and has the arithmetic; its stores are not touched.
        asked: What would be asked for.

    Raises:
        SreError: What :func:`agent.stages.plan_request.requested_plan` refuses, and a service that is not watched.
    """
    service, now = context.rules.services.service(asked.service), context.clock.now()
    request = ChangeRequest(
        id=request_id(request_key(asked.by.who, service.name, asked.actions, asked.target), 0),
        service=service.name,
        actions=asked.actions,
        why=context.rules.redact(asked.why).strip()[:WHY_CHARS] or "no reason given",
        asker=asked.by.who[:ASKER_CHARS],
        channel=asked.by.channel,
        verified=asked.by.verified,
        made_at=now,
        target=asked.target,
    )
    plan = requested_plan(context, requested_incident(request, service.platform, now), now)
    live = described(context, service.name, plan.actions)
    required = context.rules.policy.requirement(service.name, plan.actions)
    own = may_approve_own(
        local=context.local, verified=False, asked_through=asked.by.channel, rule=required.self_approve
    )
    people = context.rules.policy.approvers_of(service.name, required)
    others = (a for a in people if asked.by.who.casefold() not in a.identities)
    return ChangePreview(
        plan=plan,
        approvers=tuple(a.name for a in others),
        self_approval=own,
        policy=explain(context.rules.policy, _subject(context, asked, plan, live), at=now),
        decode_tokens_per_s_now=_speed(context, live),
    )


def _subject(context: StageContext, asked: ChangeAsked, plan: Plan, live: Live | None) -> Subject:
    over = budget_refusal(context, plan, live.config) if live is not None else None
    return Subject(
        service=plan.target.service,
        actions=plan.actions,
        asker=plan.asked_by,
        asked_through=asked.by.channel,
        local=context.local,
        unproved=plan.unproved,
        over_budget=over,
    )


def _speed(context: StageContext, live: Live | None) -> float | None:
    if live is None or live.config == NO_SERVICE:
        return None
    return context.rules.fits.decode_tokens_per_s(live.service, live.config)
