"""A plan is answered once, by a person or by policy; the answer is signed over exactly that plan."""

from datetime import datetime

from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import NO_REASON, Channel, Choice, Decision, Person, Vote, sign
from agent.core.incident.incident import Incident
from agent.core.incident.phase import EventKind, Phase
from agent.core.plan.plan import DIGEST_SHOWN, Plan
from agent.errors import NotFound, PolicyRefused, StateConflict
from agent.ports.stage_context import StageContext
from agent.presentation.plan_title import plan_title
from agent.presentation.standing import class_words
from agent.stages.shared.approval import check_requested, is_automatic, person_of, refusal_of_decider
from agent.stages.shared.commit import save
from agent.stages.shared.database_pair import WAY_BACK, note_reached, pairing_fault
from agent.stages.shared.decision_request import DecisionRequest, NotRecorded
from agent.stages.shared.freezes import broken_freezes, undecided
from agent.stages.shared.kill_switch import kill_switch_message, kill_switch_reason
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.spans import incident_span
from agent.stages.shared.votes import RIVALS, cast_vote, put_vote_on_record, show_votes, withdraw_vote

POLICY_NAME = "policy"  # who decides where policy says automatic


__all__ = ["POLICY_NAME", "DecisionRequest", "NotRecorded", "auto_approve", "plan_to_decision"]


def plan_to_decision(context: StageContext, request: DecisionRequest) -> Decision | Vote:
    """Record one answer to one plan and order what follows from it.

    Where the rules ask for several people, an approval is a vote until the last one makes the decision; until then it
    can be taken back.

    Returns:
        The signed decision, or the vote where more are needed; for a repeated identical answer, the one that was
        recorded first.

    Raises:
        NotFound: There is no such plan.
        PolicyRefused: The plan is not the one to decide, it expired, or who asks may not decide.
        StateConflict: Somebody was faster; the message names who.
        NotRecorded: Nobody waits for the answer any more, or others kept writing; say it again.
    """
    plan = _plan_of(context, request.plan)
    if request.withdraw:
        return _withdrawn(context, plan, request)
    incident = context.store.load(plan.incident)
    if incident.decision is not None and incident.decision.plan == plan.id:
        return _repeated(incident.decision, request)
    channel, answer = request.by.channel.value, request.answer.value
    with incident_span(context, plan_to_decision.__name__, incident, plan=plan.id, channel=channel, answer=answer):
        return _answered(context, incident, plan, request)


def _answered(context: StageContext, incident: Incident, plan: Plan, request: DecisionRequest) -> Decision | Vote:
    now = context.now_for(incident)
    _check(context, incident, plan, request)
    if now >= plan.expires_at:
        given = f" with {incident.approvals.given_text}" if incident.approvals and incident.approvals.given else ""
        raise undecided(plan, f"it expired at {plan.expires_at:%Y-%m-%d %H:%M:%S} UTC{given}", "wait for the next plan")
    if request.answer is Choice.APPROVE and not plan.by_person:
        _check_switch(context, plan)
        needed = context.rules.policy.requirement(plan.target.service, plan.actions).approvals
        if needed > 1 and request.by.channel is not Channel.POLICY:
            return _vote(context, incident, plan, request, needed=needed, now=now)
    signed = _signed(context, plan, request, now, breaks=broken_freezes(context, plan, request, now))
    _check_awaited(plan, request)
    held = context.control_store().claim(signed.incident, signed.plan, signed.model_dump_json())
    return _repeated(_finish(context, incident, held), request)


def _finish(context: StageContext, incident: Incident, held: str) -> Decision:
    """Bring the decision that holds the plan on record and into the incident, whoever made it."""
    decision, row = _on_record(context, held)
    try:
        _record(context, incident, decision)
    except StateConflict:
        _record_again(context, decision)
    note_reached(context.store, context.control_store(), row)
    return decision


def _vote(
    context: StageContext, incident: Incident, plan: Plan, request: DecisionRequest, *, needed: int, now: datetime
) -> Decision | Vote:
    """Record one approval of several; the last one makes the decision, in the same transaction."""
    if plan.policy != context.rules.policy.digest:
        why = "the policy or a freeze window changed since it was made, so it and its approvals are void"
        raise undecided(plan, why, f"reject it to get a new plan: sre-agent reject {plan.id} --why TEXT")

    person = person_of(context, person=request.by)

    def vote_of(earlier: tuple[Vote, ...]) -> Vote:
        broken = {name: vote.person for vote in earlier for name in vote.breaks}
        more = broken_freezes(context, plan, request, now, spared=frozenset(broken))
        own = tuple(name for name, by in broken.items() if by == person) if more else ()
        _check_awaited(plan, request)
        return _unsigned(context, plan, request, now, (*own, *more)).signed(context.receipts())

    def decision_of(votes: tuple[Vote, ...]) -> Decision | None:
        if len({vote.person for vote in votes}) < needed:
            return None
        breaks = tuple(dict.fromkeys(name for vote in votes for name in vote.breaks))
        return _signed(context, plan, request, now, breaks=breaks, votes=votes)

    voter = (person, request.by.channel, request.by.who)
    cast = cast_vote(
        context, plan, voter=voter, vote_of=vote_of, decision_of=decision_of, breaks_glass=request.break_glass
    )
    if cast is None:
        raise _not_yet(plan.id, "others are answering it at this moment")
    if cast.decision:
        return _repeated(_finish(context, incident, cast.decision), request)
    put_vote_on_record(context, cast.vote, "vote.approve")
    by = cast.vote.shown
    said = f"plan {plan.id} approved by {by} through {request.by.channel}; more are needed"
    show_votes(context, plan, said, by=by, kind=EventKind.VOTE_GIVEN)
    return cast.vote


def _withdrawn(context: StageContext, plan: Plan, request: DecisionRequest) -> Vote:
    """Take back an approval of a plan that needs more of them; only before it is decided or has expired."""
    incident = _withdrawable(context, plan, request)
    channel, name = request.by.channel.value, plan_to_decision.__name__
    with incident_span(context, name, incident, plan=plan.id, channel=channel, answer="withdraw"):
        return _take_back(context, plan, request)


def _take_back(context: StageContext, plan: Plan, request: DecisionRequest) -> Vote:
    _check_awaited(plan, request)
    person = person_of(context, person=request.by)
    vote = withdraw_vote(context, plan, voter=(person, request.by.channel, request.by.who), why=request.why)
    put_vote_on_record(context, vote, "vote.withdraw")
    why = f": {vote.why}" if vote.why else ""
    said = f"{vote.shown} withdrew the approval of plan {plan.id}{why}"
    show_votes(context, plan, said, by=vote.shown, kind=EventKind.VOTE_WITHDRAWN)
    return vote


def _withdrawable(context: StageContext, plan: Plan, request: DecisionRequest) -> Incident:
    """Return the incident of the plan, unless no approval can stand behind the word, or none counts any more.

    Raises:
        PolicyRefused: It is about another plan than was shown, too late, or from somebody who is no approver.
    """
    incident = context.store.load(plan.incident)
    hint = f"look at the plan: sre-agent incidents show {plan.incident}"
    if request.plan_digest is not None and not _is_digest(request.plan_digest, plan):
        raise _kept(plan, f"what was shown had digest {request.plan_digest[:8]!r}, it has {plan.digest[:8]!r}", hint)
    if request.by.verified and context.rules.policy.approver(request.by.channel, request.by.who) is None:
        raise _kept(plan, context.rules.policy.bars(request.by.channel, request.by.who, plan.target.service), hint)
    current = incident.plan is not None and incident.plan.id == plan.id
    if not current or incident.phase in {Phase.EXPIRED, Phase.SUPERSEDED, Phase.WITHDRAWN, Phase.SELF_RECOVERED}:
        raise _kept(plan, f"its approvals count for nothing any more, the incident is {incident.phase}", hint)
    if incident.phase is Phase.ASKED and context.now_for(incident) >= plan.expires_at:
        raise _kept(plan, f"it expired at {plan.expires_at:%Y-%m-%d %H:%M:%S} UTC, and its approvals with it", hint)
    return incident


def _kept(plan: Plan, why: str, hint: str) -> PolicyRefused:
    return PolicyRefused(f"no approval of plan {plan.id!r} was withdrawn", why=why, hint=hint)


def _plan_of(context: StageContext, plan_id: str) -> Plan:
    plan = context.store.plan(plan_id)
    if plan is None:
        raise NotFound(
            f"plan {plan_id!r} was not decided", why="there is none with that id", hint="see: sre-agent incidents"
        )
    return plan


def _check_awaited(plan: Plan, request: DecisionRequest) -> None:
    if not request.is_awaited():
        raise NotRecorded(
            f"plan {plan.id!r} was not decided", why="it took longer than the caller waits", hint="send it again"
        )


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
    if kill_switch_message(context):
        return StageOutcome.WAITING
    request = DecisionRequest(
        plan=plan.id,
        answer=Choice.APPROVE,
        by=Person(who=POLICY_NAME, channel=Channel.POLICY, verified=True),
        plan_digest=plan.digest,
    )
    try:
        plan_to_decision(context, request)
    except (PolicyRefused, StateConflict):
        return StageOutcome.WAITING  # a person was faster, or the plan is gone
    return StageOutcome.MOVED


def _check_switch(context: StageContext, plan: Plan) -> None:
    """Refuse an approval from which nothing could follow, so that the plan stays; the executor looks again.

    Raises:
        PolicyRefused: The kill switch is on, or the databases do not belong together.
        DependencyFailed: Nobody knows how it stands.
    """
    apart = pairing_fault(context)
    if apart:
        raise undecided(plan, apart, WAY_BACK)
    stopped = kill_switch_reason(context)
    if stopped:
        raise undecided(plan, stopped, f"turn it off (sre-agent stop --off), then: sre-agent approve {plan.id}")


def _on_record(context: StageContext, held: str) -> tuple[Decision, AuditRow]:
    """Return the decision that holds the plan, ours or the winner's, and its row of the record.

    The claim holds the whole decision, so that whoever comes next finishes what a dead writer began, the record too.
    """
    control = context.control_store()
    first = Decision.model_validate_json(held)
    if first.breaks:
        why = f"{', '.join(first.breaks)}: {next((v.why for v in first.votes if v.breaks), first.why)}"
        control.append(
            at=first.at, kind="freeze.break_glass", incident=first.incident, who=first.who, body=why, once=True
        )
    row = control.append(
        at=first.at, kind=f"decision.{first.answer}", incident=first.incident, who=first.who, body=held, once=True
    )
    return first, row


def _record_again(context: StageContext, decision: Decision) -> None:
    """The incident was written meanwhile (a count, a signal, the same decision): look again, once per rival."""
    for _ in range(RIVALS):
        incident = context.store.load(decision.incident)
        if incident.decision is not None and incident.decision.plan == decision.plan:
            return
        if incident.phase is not Phase.ASKED or incident.plan is None or incident.plan.id != decision.plan:
            raise PolicyRefused(
                f"plan {decision.plan!r} was not decided",
                why=f"the plan was withdrawn at that moment, the incident is {incident.phase}",
                hint=f"see what replaced it: sre-agent incidents show {incident.id}",
            )
        try:
            _record(context, incident, decision)
        except StateConflict:
            continue
        return
    raise _not_yet(decision.plan, "other workers are writing to its incident")


def _not_yet(plan_id: str, why: str) -> NotRecorded:
    return NotRecorded(f"plan {plan_id!r} is not recorded yet", why=why, hint=f"try again: sre-agent approve {plan_id}")


def _record(context: StageContext, incident: Incident, decision: Decision) -> None:
    approved = decision.answer is Choice.APPROVE
    phase = Phase.APPROVED if approved else Phase.REJECTED
    moved = incident.move(phase, now=decision.at, decision=decision, due_at=decision.at)
    how = f" through {class_words(decision.channel)}" + ("" if decision.verified else ", not verified")
    why = decision.why or ("" if approved else NO_REASON)
    what = f"plan {decision.plan} {'approved' if approved else 'rejected'} by {decision.shown}{how}"
    what += f", in spite of the freeze window {' and '.join(decision.breaks)}" if decision.breaks else ""
    save(context, moved, what + (f": {why}" if why else ""), now=decision.at, by=decision.shown)


def _check(context: StageContext, incident: Incident, plan: Plan, request: DecisionRequest) -> None:
    current = incident.plan
    if current is None or current.id != plan.id or incident.phase is not Phase.ASKED:
        replaced = current is not None and current.id != plan.id
        newer = f"; plan {current.id!r} has taken its place: {_title(current)}" if replaced and current else ""
        hint = f"look at {'it' if newer else 'the incident'}: sre-agent incidents show {incident.id}"
        raise undecided(plan, f"the incident is {incident.phase}{newer}", hint)
    if request.plan_digest is not None and not _is_digest(request.plan_digest, plan):
        why = f"what was shown had digest {request.plan_digest[:8]!r}, the plan has {plan.digest[:8]!r}: {_title(plan)}"
        raise undecided(plan, why, f"look at the plan again: sre-agent incidents show {incident.id}")
    change = check_requested(context, incident, plan) if request.answer is Choice.APPROVE else incident.request
    barred = refusal_of_decider(
        context,
        plan,
        answer=request.answer,
        person=request.by,
        asked_through=change.channel if change is not None else None,
    )
    if barred:
        raise undecided(plan, barred, "ask somebody whom policy.toml names for this service")
    over = incident.approvals.over_budget if incident.approvals is not None else ""
    if request.answer is Choice.APPROVE and over:
        raise undecided(plan, over, "raise budget_usd_per_h in policy.toml, or reject it to get another plan")
    if request.answer is Choice.APPROVE and not incident.may_change and not plan.by_person:
        raise undecided(
            plan,
            "it belongs to a replay, which changes nothing",
            "replay it with --live to be able to apply its plan",
        )


def _title(plan: Plan) -> str:
    return plan_title(plan).rstrip(".")


def _is_digest(shown: str, plan: Plan) -> bool:
    return len(shown) >= DIGEST_SHOWN and plan.digest.startswith(shown)


def _signed(
    context: StageContext,
    plan: Plan,
    request: DecisionRequest,
    now: datetime,
    *,
    breaks: tuple[str, ...] = (),
    votes: tuple[Vote, ...] = (),
) -> Decision:
    approver = context.rules.policy.approver(request.by.channel, request.by.who) if request.by.verified else None
    return sign(
        Decision(
            plan=plan.id,
            plan_digest=plan.digest,
            incident=plan.incident,
            answer=request.answer,
            who=request.by.who,
            name=approver.name if approver is not None else "",
            verified=request.by.verified,
            channel=request.by.channel,
            why=context.rules.redact(request.why),
            at=now,
            expires_at=plan.expires_at,
            target=plan.target,
            policy=plan.policy,
            prior_template=plan.prior_template,
            votes=votes,
            breaks=breaks,
        ),
        context.receipts(),
    )


def _unsigned(
    context: StageContext, plan: Plan, request: DecisionRequest, now: datetime, breaks: tuple[str, ...]
) -> Vote:
    approver = context.rules.policy.approver(request.by.channel, request.by.who) if request.by.verified else None
    return Vote(
        plan=plan.id,
        plan_digest=plan.digest,
        incident=plan.incident,
        person=person_of(context, person=request.by),
        who=request.by.who,
        name=approver.name if approver is not None else "",
        verified=request.by.verified,
        channel=request.by.channel,
        breaks=breaks,
        why=context.rules.redact(request.why),
        at=now,
    )


def _repeated(decision: Decision, request: DecisionRequest) -> Decision:
    if decision.answer is request.answer and (decision.who == request.by.who or _voted(decision, request)):
        return decision
    raise StateConflict(
        f"plan {decision.plan!r} was not decided again",
        why=f"{decision.shown} said {decision.answer} through {decision.channel} at {decision.at:%H:%M:%S} UTC",
        hint=f"see what happens next: sre-agent incidents show {decision.incident}",
    )


def _voted(decision: Decision, request: DecisionRequest) -> bool:
    return any((vote.channel, vote.who) == (request.by.channel, request.by.who) for vote in decision.votes)
