"""Who may approve which plan; checked when somebody decides, and again by the executor before any effect."""

from agent.core.change.request import ChangeRequest, check_request
from agent.core.decision.approvals import stops_automatic
from agent.core.decision.decision import UNVERIFIED, Channel, Choice, Decision, Person, check_receipt
from agent.core.decision.policy import Requirement
from agent.core.decision.rule import Mode
from agent.core.decision.self_approval import may_approve_own
from agent.core.incident.incident import TAKEN_BACK, Incident
from agent.core.plan.plan import Plan
from agent.errors import PolicyRefused
from agent.ports.stage_context import Owner, StageContext
from agent.stages.shared.freezes import freezes_at

_LOCAL = frozenset({Channel.COMMAND_LINE, Channel.CONSOLE})


def refusal_of_decider(
    context: StageContext,
    plan: Plan,
    *,
    answer: Choice,
    person: Person,
    asked_through: Channel | None = None,
) -> str:
    """Return why this word does not count for this plan, or nothing.

    Args:
        context: Policy, and whether this is one machine's own installation.
        plan: The plan that it is about.
        answer: Who asks may reject, never approve.
        person: Whose word it is.
        asked_through: The channel of the request that the plan carries out; None for any other plan.
    """
    policy, service, channel, who = context.rules.policy, plan.target.service, person.channel, person.who
    if answer is Choice.APPROVE and plan.unproved:
        return plan.unproved
    required = policy.requirement(service, plan.actions)
    if required.mode is Mode.NEVER and answer is Choice.APPROVE:
        return f"policy.toml never allows this for {service!r}"
    if channel is Channel.POLICY:
        own = context.owner is Owner.DECISION and required.mode is Mode.AUTOMATIC and asked_through is None
        return "" if own else "policy.toml asks for a person"
    may_self_approve = may_approve_own(
        local=context.local, verified=person.verified, asked_through=asked_through, rule=required.self_approve
    )
    if not person.verified:
        unproven = _unproven_here(context, person)
        if unproven or answer is Choice.REJECT:
            return unproven
        return unproven_refusal(required, who=who, asked_by=plan.asked_by, may_self_approve=may_self_approve)
    return _proven(context, plan, required, answer=answer, channel=channel, who=who, may_self_approve=may_self_approve)


def refusal_of_person(context: StageContext, service: str, person: Person) -> str:
    """Return why somebody may do nothing about incidents of a service, or nothing; whoever may reject a plan may.

    Args:
        context: Policy, and whether this is one machine's own installation.
        service: Of the incident.
        person: Who they are.
    """
    if not person.verified:
        return _unproven_here(context, person)
    return context.rules.policy.bars(person.channel, person.who, service)


def _unproven_here(context: StageContext, person: Person) -> str:
    if context.local and person.channel in _LOCAL:
        return ""
    return (
        f"nothing proves that {person.who!r} is who it says; an unproven word counts on one machine's own service only"
    )


def _proven(
    context: StageContext,
    plan: Plan,
    required: Requirement,
    *,
    answer: Choice,
    channel: Channel,
    who: str,
    may_self_approve: bool,
) -> str:
    policy = context.rules.policy
    barred = policy.bars(channel, who, plan.target.service, required if answer is Choice.APPROVE else None)
    approver = policy.approver(channel, who)
    if barred or approver is None:
        return barred or "nobody is named"
    asker = (plan.asked_by or "").casefold()
    if answer is Choice.APPROVE and asker and asker in approver.identities and not may_self_approve:
        return f"{approver.name!r} asked for it, and who asks does not approve"
    return ""


def unproven_refusal(required: Requirement, *, who: str, asked_by: str | None, may_self_approve: bool) -> str:
    """Return why somebody whom nothing proves may not approve, or nothing.

    Args:
        required: By the policy.
        who: The name that they give.
        asked_by: Who asked for it; None where nobody did.
        may_self_approve: Whether who asked may approve.
    """
    if required.groups:
        named = " and ".join(" or ".join(repr(g) for g in row) for row in required.groups)
        return f"policy.toml asks for a member of {named}, and nothing proves that {who!r} is one"
    if asked_by is not None and asked_by.casefold() == who.casefold() and not may_self_approve:
        return f"{who!r} asked for it, and who asks does not approve"
    return ""


def is_automatic(context: StageContext, incident: Incident, plan: Plan) -> bool:
    """Whether policy lets this plan go on without a person.

    Never what only a model says, what a person asks for, or what follows after a person took a change back.
    """
    taken_back = any(r.ended == TAKEN_BACK and r.incident == incident.id for r in incident.remedies)
    if incident.request is not None or incident.replanned is not None or taken_back:
        return False
    policy, service = context.rules.policy, plan.target.service
    doubtful = incident.diagnosis is None or incident.diagnosis.led_by_model
    mode = policy.mode(service, plan.actions)
    frozen = stops_automatic(
        freezes_at(context, service, context.now_for(incident)), asked_for=plan.asked_by is not None
    )
    ours = incident.may_change and not plan.by_person and not plan.unproved
    return mode is Mode.AUTOMATIC and ours and not doubtful and not frozen


def person_of(context: StageContext, person: Person) -> str:
    """Return whose word it is, whatever the channel: an approver's name, or one name for all whom nothing proves."""
    approver = context.rules.policy.approver(person.channel, person.who) if person.verified else None
    return approver.name if approver is not None else UNVERIFIED


def check_approval(context: StageContext, incident: Incident, plan: Plan, decision: Decision) -> None:
    """Refuse unless the decision in the incident allows exactly this plan for exactly this service, now.

    Raises:
        PolicyRefused: See :func:`check_covered`; or policy does not allow it any more.
        DependencyFailed: The holder of the key did not answer; nothing may follow.
    """
    check_covered(context, incident, plan, decision)
    if plan.policy != context.rules.policy.digest:
        raise refused(plan, "the policy changed after the approval", "look at the new plan and approve it")
    request = check_requested(context, incident, plan)
    for word in decision.votes or (decision,):
        barred = refusal_of_decider(
            context,
            plan,
            answer=decision.answer,
            person=word.by,
            asked_through=request.channel if request is not None else None,
        )
        if barred:
            raise refused(plan, barred, "ask an approver of this service")
    _check_votes(context, plan, decision)
    context.rules.policy.check(plan.actions, plan.target.service)


def _check_votes(context: StageContext, plan: Plan, decision: Decision) -> None:
    """Refuse unless as many different people as the rules ask for approved this plan, and none took it back."""
    needed = context.rules.policy.requirement(plan.target.service, plan.actions).approvals
    if needed < 2 or plan.by_person:
        return
    ballot = context.control_store().ballot(plan.digest)
    standing = ballot.standing if ballot is not None else ()
    people = set()
    for vote in decision.votes:
        if vote.plan_digest != plan.digest or vote not in standing or not vote.is_signed(context.receipts()):
            raise refused(plan, f"the approval of {vote.shown!r} is not on record", "look at who writes to the store")
        people.add(person_of(context, person=vote.by))
    if len(people) < needed:
        raise refused(
            plan, f"{len(people)} of {needed} people approved it", f"sre-agent approve {plan.id}, by one more person"
        )


def check_covered(context: StageContext, incident: Incident, plan: Plan, decision: Decision) -> None:
    """Refuse unless the decision is a signed approval of exactly this plan of this incident.

    A record that somebody else wrote into the store of incidents does not pass: the receipt is signed over plan,
    target, policy and way back, and the target names the service. It is what a roll-back rests on too, which policy,
    limits and expiry do not touch.

    Raises:
        PolicyRefused: Forged, of another plan, incident or service, or not an approval.
        DependencyFailed: The holder of the key did not answer; nothing may follow.
    """
    check_receipt(decision, plan, context.receipts())
    if plan.incident != incident.id or plan.target.service != incident.service or plan.run != incident.run:
        raise refused(plan, "it was made for another incident, service or run", "look at who writes to the store")
    if decision.answer is not Choice.APPROVE:
        raise refused(plan, "the decision is a rejection", "look at the incident")


def refused(plan: Plan, why: str, hint: str) -> PolicyRefused:
    """Return the refusal of an approved plan."""
    return PolicyRefused(f"plan {plan.id!r} was not applied", why=why, hint=hint)


def check_requested(context: StageContext, incident: Incident, plan: Plan) -> ChangeRequest | None:
    """Refuse a plan of a request that the control database does not hold, or holds otherwise; None for an incident.

    Whoever writes the incident database alone can neither make a request nor turn one into an incident.

    Raises:
        PolicyRefused: The request, its asker or its actions are not what was signed.
        DependencyFailed: The control database or the holder of the key did not answer; nothing may follow.
    """
    held = context.control_store().change_request(incident.id)
    if held is None and incident.request is None:
        return None
    if held is None:
        raise _forged(plan, "the control database holds no such request")
    check_request(held, context.receipts())
    if incident.request != held:
        raise _forged(plan, "the request is not the one that was signed")
    if plan.actions != held.actions or plan.asked_by != held.asker or plan.target.service != held.service:
        raise _forged(plan, "its asker, service or actions are not those of the signed request")
    return held


def _forged(plan: Plan, why: str) -> PolicyRefused:
    hint = "ask for the change again: sre-agent change; check who writes to the store"
    return PolicyRefused(f"plan {plan.id!r} was not applied", why=why, hint=hint)
