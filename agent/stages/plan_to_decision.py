"""A plan is answered once, by a person or by policy; the answer is signed over exactly that plan."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agent.core.decision.decision import NO_REASON, Channel, Choice, Decision, sign
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.plan import DIGEST_SHOWN, Plan
from agent.errors import InputRejected, PolicyRefused, StateConflict
from agent.ports.stage_context import StageContext
from agent.presentation.plan_title import plan_title
from agent.stages.shared.approval import is_automatic, refusal_of_decider
from agent.stages.shared.commit import save
from agent.stages.shared.database_pair import WAY_BACK, note_reached, pairing_fault
from agent.stages.shared.kill_switch import kill_switch_message, kill_switch_reason
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.recorded_request import check_requested

RIVALS = 5
POLICY_NAME = "policy"  # who decides where policy says automatic


class NotRecorded(StateConflict):
    """Nothing stands against the word, and yet it is not recorded: the very same may be said again."""


@dataclass(frozen=True, kw_only=True)
class DecisionRequest:
    """What somebody said about a plan, as the channel heard it.

    Attributes:
        why: Their reason, untrusted; secrets are taken out of it before it is kept.
        plan_digest: The digest that was shown to them, or its first ``DIGEST_SHOWN`` characters or more; None where
            the channel shows the plan itself.
        verified: Whether the channel proved who they are.
        is_awaited: Whether somebody still waits for the answer; asked right before it is recorded.
    """

    plan: str
    answer: Choice
    who: str
    channel: Channel
    verified: bool
    why: str = ""
    plan_digest: str | None = None
    is_awaited: Callable[[], bool] = lambda: True


def plan_to_decision(context: StageContext, word: DecisionRequest) -> Decision:
    """Record one answer to one plan and order what follows from it.

    Returns:
        The signed decision; for a repeated identical answer, the one that was recorded first.

    Raises:
        InputRejected: There is no such plan.
        PolicyRefused: The plan is not the one to decide, it expired, or who asks may not decide.
        StateConflict: Somebody was faster; the message names who.
        NotRecorded: Nobody waits for the answer any more, or others kept writing; say it again.
    """
    plan = context.store.plan(word.plan)
    if plan is None:
        raise InputRejected(
            f"plan {word.plan!r} was not decided", why="there is none with that id", hint="see: sre-agent incidents"
        )
    incident = context.store.load(plan.incident)
    if incident.decision is not None and incident.decision.plan == plan.id:
        return _repeated(incident.decision, word)
    now = context.now_for(incident)
    _check(context, incident, plan, word)
    if now >= plan.expires_at:
        raise _refused(plan, f"it expired at {plan.expires_at:%Y-%m-%d %H:%M:%S} UTC", "wait for the next plan")
    if word.answer is Choice.APPROVE and not plan.by_person:
        _check_switch(context, plan)
    signed = _signed(context, plan, word, now)
    if not word.is_awaited():
        raise NotRecorded(
            f"plan {plan.id!r} was not decided", why="it took longer than the caller waits", hint="send it again"
        )
    decision, row = _first(context, signed)
    try:
        _record(context, incident, decision)
    except StateConflict:
        _record_again(context, decision)
    note_reached(context.store, context.control_store(), row)
    return _repeated(decision, word)


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
    word = DecisionRequest(
        plan=plan.id,
        answer=Choice.APPROVE,
        who=POLICY_NAME,
        channel=Channel.POLICY,
        verified=True,
        plan_digest=plan.digest,
    )
    try:
        plan_to_decision(context, word)
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
        raise _refused(plan, apart, WAY_BACK)
    stopped = kill_switch_reason(context)
    if stopped:
        raise _refused(plan, stopped, f"turn it off (sre-agent stop --off), then: sre-agent approve {plan.id}")


def _first(context: StageContext, decision: Decision) -> tuple[Decision, int]:
    """Claim the plan for this decision; return the one that holds it, ours or the winner's, and its row of the record.

    The claim holds the whole decision, so that whoever comes next finishes what a dead writer began, the record too.
    """
    control = context.control_store()
    held = control.claim(decision.incident, decision.plan, decision.model_dump_json())
    first = Decision.model_validate_json(held)
    row = control.append(
        at=first.at, kind=f"decision.{first.answer}", incident=first.incident, who=first.who, body=held, once=True
    )
    return first, row.number


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
    raise NotRecorded(
        f"plan {decision.plan!r} is not recorded yet",
        why="other workers are writing to its incident",
        hint=f"try again: sre-agent approve {decision.plan}",
    )


def _record(context: StageContext, incident: Incident, decision: Decision) -> None:
    approved = decision.answer is Choice.APPROVE
    phase = Phase.APPROVED if approved else Phase.REJECTED
    moved = incident.move(phase, now=decision.at, decision=decision, due_at=decision.at)
    how = f" through {decision.channel}" + ("" if decision.verified else ", not verified")
    why = decision.why or ("" if approved else NO_REASON)
    what = f"plan {decision.plan} {'approved' if approved else 'rejected'} by {decision.shown}{how}"
    save(context, moved, what + (f": {why}" if why else ""), now=decision.at, by=decision.shown)


def _check(context: StageContext, incident: Incident, plan: Plan, word: DecisionRequest) -> None:
    current = incident.plan
    if current is None or current.id != plan.id or incident.phase is not Phase.ASKED:
        replaced = current is not None and current.id != plan.id
        newer = f"; plan {current.id!r} has taken its place: {_title(current)}" if replaced and current else ""
        hint = f"look at {'it' if newer else 'the incident'}: sre-agent incidents show {incident.id}"
        raise _refused(plan, f"the incident is {incident.phase}{newer}", hint)
    if word.plan_digest is not None and not _is_digest(word.plan_digest, plan):
        why = f"what was shown had digest {word.plan_digest[:8]!r}, the plan has {plan.digest[:8]!r}: {_title(plan)}"
        raise _refused(plan, why, f"look at the plan again: sre-agent incidents show {incident.id}")
    request = check_requested(context, incident, plan) if word.answer is Choice.APPROVE else incident.request
    barred = refusal_of_decider(
        context,
        plan,
        answer=word.answer,
        channel=word.channel,
        who=word.who,
        verified=word.verified,
        asked_through=request.channel if request is not None else None,
    )
    if barred:
        raise _refused(plan, barred, "ask somebody whom policy.toml names for this service")
    if word.answer is Choice.APPROVE and not incident.may_change and not plan.by_person:
        raise _refused(
            plan,
            "it belongs to a replay, which changes nothing",
            "replay it with --live to be able to apply its plan",
        )


def _title(plan: Plan) -> str:
    return plan_title(plan).rstrip(".")


def _is_digest(shown: str, plan: Plan) -> bool:
    return len(shown) >= DIGEST_SHOWN and plan.digest.startswith(shown)


def _signed(context: StageContext, plan: Plan, word: DecisionRequest, now: datetime) -> Decision:
    approver = context.rules.policy.approver(word.channel, word.who) if word.verified else None
    return sign(
        Decision(
            plan=plan.id,
            plan_digest=plan.digest,
            incident=plan.incident,
            answer=word.answer,
            who=word.who,
            name=approver.name if approver is not None else "",
            verified=word.verified,
            channel=word.channel,
            why=context.rules.redact(word.why),
            at=now,
            expires_at=plan.expires_at,
            target=plan.target,
            policy=plan.policy,
            prior_template=plan.prior_template,
        ),
        context.receipts(),
    )


def _repeated(decision: Decision, word: DecisionRequest) -> Decision:
    if decision.answer is word.answer and decision.who == word.who:
        return decision
    raise StateConflict(
        f"plan {decision.plan!r} was not decided again",
        why=f"{decision.shown} said {decision.answer} through {decision.channel} at {decision.at:%H:%M:%S} UTC",
        hint=f"see what happens next: sre-agent incidents show {decision.incident}",
    )


def _refused(plan: Plan, why: str, hint: str) -> PolicyRefused:
    return PolicyRefused(f"plan {plan.id!r} was not decided", why=why, hint=hint)
