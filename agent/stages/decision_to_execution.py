"""An approved plan is looked at once more, its intent is stored, and the platform is called at most once."""

from datetime import datetime, timedelta

from agent.core.change.execution import Effect, EffectKind, EffectState, Execution, Intent, revision_name
from agent.core.change.verification import Check, Measurement, Verification
from agent.core.incident.incident import INVALID, Incident, Remedy
from agent.core.incident.phase import Phase
from agent.core.plan.action import applied, difference
from agent.core.plan.plan import Plan
from agent.core.planning.planning import proof_of
from agent.core.service.serving import Live
from agent.core.value import canonical
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.control import Lease, Use
from agent.ports.platform import Operation, Order, Platform
from agent.ports.stage_context import StageContext
from agent.ports.store import head_key
from agent.stages.shared.approval import check_approval, refused
from agent.stages.shared.commit import save
from agent.stages.shared.effects import (
    changes_stopped,
    close_effect,
    key_of,
    next_slot_at,
    put_on_record,
    rate_limit,
    stored_intent,
)
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.service_lease import final_preflight, require_unchanged, service_lease


def begin_execution(context: StageContext, incident: Incident) -> StageOutcome:
    """Check receipt, policy, kill switch, limits and live state; then store the intent, then move the incident.

    Any doubt refuses, and the reason is kept. Too many changes lately is no doubt: it waits. What could not be read is
    no doubt either: nothing is decided, and the step is tried again.
    """
    now = max(context.clock.now(), incident.phase_at)
    plan, decision = incident.plan, incident.decision
    assert plan is not None
    assert decision is not None
    try:
        _may(context, incident, plan, now)
        if plan.by_person:
            return _hand_over(context, incident, plan, now)
        live = _described(context, plan)
        _check_as_shown(context, incident, plan, live)
    except (PolicyRefused, InputRejected) as refusal:
        return _refuse(context, incident, str(refusal), now)
    barred = _not_valid(context, incident, plan, live)
    if barred:
        return _refuse_for_good(context, incident, plan, barred, now)
    begun = context.control_store().begin(_intent(incident, plan, live, now), rate_limit=rate_limit(context))
    if begun.use is Use.RATE_LIMITED:
        return _wait(context, incident, plan, now)
    if begun.use is not Use.OURS or begun.intent is None:
        before = "for another effect" if begun.use is Use.SPENT else "for this very change, which was refused then"
        spent = refused(plan, f"the approval was used before, {before}", "look at who writes to the store")
        return _refuse(context, incident, str(spent), now)
    _intend(context, incident, begun.intent, live, now)
    return StageOutcome.MOVED


def _refuse(context: StageContext, incident: Incident, why: str, now: datetime) -> StageOutcome:
    close_effect(context, incident, EffectKind.APPLY, why)
    save(context, incident.move(Phase.REFUSED, now=now, due_at=now, ended_why=why), why, now=now)
    return StageOutcome.MOVED


def _wait(context: StageContext, incident: Incident, plan: Plan, now: datetime) -> StageOutcome:
    """Too many changes lately; while it waits, its approval may run out."""
    free_at = next_slot_at(context, plan.target.service, now) or now + timedelta(seconds=context.rules.times.poll_s)
    if incident.due_at != free_at:
        what = f"waits until {free_at:%H:%M:%S} UTC: the limit of changes is reached"
        save(context, incident.with_(due_at=free_at), what, now=now, wake=False)
    return StageOutcome.WAITING


def _may(context: StageContext, incident: Incident, plan: Plan, now: datetime) -> None:
    _check_allowed(context, incident, plan, now)
    if not incident.may_change and not plan.by_person:
        raise refused(plan, "it belongs to a replay that changes nothing", "replay with --live")
    stopped = changes_stopped(context)
    if stopped:
        raise refused(plan, stopped, "make the change by hand; this incident asks no more")


def _check_allowed(context: StageContext, incident: Incident, plan: Plan, now: datetime) -> None:
    decision = incident.decision
    if decision is None:
        raise refused(plan, "nobody approved it", f"sre-agent approve {plan.id}")
    check_approval(context, incident, plan, decision)
    if now >= decision.expires_at:
        raise refused(plan, f"the approval expired at {decision.expires_at:%H:%M:%S} UTC", "approve the next plan")


def _described(context: StageContext, plan: Plan) -> Live:
    live = context.live(plan.target.service)
    if live is None:
        raise refused(plan, "there is no adapter for its platform", "do it by hand")
    return live


def _check_as_shown(context: StageContext, incident: Incident, plan: Plan, live: Live) -> None:
    """Refuse a plan that was made for another state, or that shows another difference or proof than it has.

    Both are computed anew from the live configuration: whoever writes the incident database chose what people saw.
    """
    if live.target != plan.target:
        raise refused(
            plan,
            f"{plan.target.service!r} changed since the plan was made "
            f"(generation {plan.target.generation}, now {live.generation})",
            "look at the new plan and approve it",
        )
    after = applied(live.config, plan.actions)
    if difference(live.config, after) != plan.difference:
        raise refused(
            plan, "it does not show what it would change", "look at the new plan, and at who writes to the store"
        )
    proof, shown = context.rules.fits.word(plan.target.service, after), plan.fit_after
    if (proof.fits, proof.reason, proof.sentence) != (shown.fits, shown.reason, shown.sentence):
        why = f"it shows {shown.sentence!r}, and the arithmetic says {proof.sentence!r}"
        raise refused(plan, why, "look at the new plan, and at who writes to the store")
    proven = proof_of(incident, live, plan.actions, context.rules.fits, word=proof)
    if (proven.proof, proven.figures) != (plan.proof, plan.proof_figures):
        why = f"it shows the proof {plan.proof!s}, and from the live configuration it is {proven.proof!s}"
        why += " with other figures" if proven.proof is plan.proof else ""
        raise refused(plan, why, "look at the new plan, and at who writes to the store")


def _not_valid(context: StageContext, incident: Incident, plan: Plan, live: Live) -> str:
    """Let the platform check the change without making it; return why it would refuse, or nothing.

    It stands here and not before the question: whoever asks may only look at services, and a dry run needs the right
    to update them.
    """
    platform = context.platform_of(plan.target.service)
    assert platform is not None
    try:
        platform.validate(_order(_intent(incident, plan, live, plan.made_at)))
    except (InputRejected, PolicyRefused) as error:
        return f"the platform would refuse the change: {error}"
    return ""


def _refuse_for_good(context: StageContext, incident: Incident, plan: Plan, why: str, now: datetime) -> StageOutcome:
    """What the platform refuses it would refuse again: the same actions are not proposed any more."""
    invalid = Remedy(proposal=plan.proposal, cause=plan.cause, ended=INVALID, at=now, incident=incident.id)
    moved = incident.move(
        Phase.REFUSED, now=now, due_at=now, ended_why=why, remedies=(*incident.remedies, invalid)[-32:]
    )
    close_effect(context, incident, EffectKind.APPLY, why)
    save(context, moved, why, now=now)
    return StageOutcome.MOVED


def _intent(incident: Incident, plan: Plan, live: Live, now: datetime) -> Intent:
    assert incident.decision is not None
    key = key_of(incident, EffectKind.APPLY)
    return Intent(
        key=key,
        kind=EffectKind.APPLY,
        incident=incident.id,
        service=incident.service,
        decision=incident.decision.id,
        plan_digest=plan.digest,
        actions=plan.actions,
        staged=plan.staged,
        target=live.target,
        etag=live.etag,
        revision=revision_name(plan.target.service, key),
        prior_revision=live.latest_ready_revision,
        prior_config=live.config,
        prior_template=live.template,
        prior_traffic=canonical([t.model_dump(mode="json") for t in live.traffic]).decode(),
        applied_at=now,
    )


def _intend(context: StageContext, incident: Incident, intent: Intent, live: Live, now: datetime) -> None:
    """Show the stored intent in the incident; it may be older than ``live`` where this step is tried again."""
    assert incident.plan is not None
    effect = Effect(
        key=intent.key, kind=intent.kind, etag=intent.etag, revision=intent.revision, intended_at=intent.applied_at
    )
    execution = Execution(
        plan=incident.plan.id,
        effects=(effect,),
        revision_before=intent.prior_revision,
        revision_after=intent.revision,
        prior_template=intent.prior_template,
        prior_traffic=intent.prior_traffic,
        prior_ready=live.ready,
        served_by_older=live.served_by_older,
    )
    moved = incident.move(Phase.APPLYING, now=now, due_at=now, execution=execution)
    heads = (head_key(incident.run, incident.service, intent.revision),)
    save(context, moved, f"intends revision {intent.revision}", now=now, heads=heads)


def _hand_over(context: StageContext, incident: Incident, plan: Plan, now: datetime) -> StageOutcome:
    """A person does it; we watch for a later sign of health."""
    execution = Execution(
        plan=plan.id, effects=(), revision_before=None, prior_template="", prior_traffic="", prior_ready=None
    )
    until = now + timedelta(seconds=context.rules.times.cool_off_s)
    moved = incident.move(Phase.APPLYING, now=now, execution=execution).move(
        Phase.VERIFYING, now=now, verification=Verification(since=now, until=until), due_at=now
    )
    save(context, moved, "a person does this; watching for a healthy signal", now=now)
    return StageOutcome.MOVED


def call_platform(context: StageContext, incident: Incident) -> StageOutcome:
    """Make the change whose intent is stored in the control database, or find that it was made already.

    What the incident says of the effect decides nothing. The etag is the one of the intent; it is never read again, so
    that a change by somebody else ends this one.
    """
    now = max(context.clock.now(), incident.phase_at)
    effect = incident.execution.effect(EffectKind.APPLY) if incident.execution is not None else None
    platform = context.platform_of(incident.service)
    assert effect is not None
    assert platform is not None
    try:
        found = platform.find(incident.service, key_of(incident, EffectKind.APPLY))
    except (InputRejected, PolicyRefused) as error:
        return _not_called(context, incident, effect, str(error), now)
    if found is not None:
        return _started(context, incident, effect, found, now)
    with service_lease(context, incident.service) as lease:
        if lease is None:
            return StageOutcome.WAITING  # it stays due; the tick wakes us again
        require_unchanged(context, incident)
        return _call(context, incident, effect, lease, now)


def _call(context: StageContext, incident: Incident, effect: Effect, lease: Lease, now: datetime) -> StageOutcome:
    platform = context.platform_of(incident.service)
    assert platform is not None
    try:
        intent = _preflight(context, incident, now)
    except (InputRejected, PolicyRefused) as error:
        found = platform.find(incident.service, key_of(incident, EffectKind.APPLY))  # a rival's call may have landed
        if found is not None:
            return _started(context, incident, effect, found, now)
        return _not_called(context, incident, effect, str(error), now)
    stopped = final_preflight(context, lease)
    if stopped:
        return _not_called(context, incident, effect, stopped, now)
    try:
        found = _apply(platform, intent)
    except (StateConflict, InputRejected, PolicyRefused) as error:
        return _not_called(context, incident, effect, str(error), now)
    return _started(context, incident, effect, found, now)


def _preflight(context: StageContext, incident: Incident, now: datetime) -> Intent:
    """Return the intent that may be carried out now: open, approved, and made for the state that stands.

    Raises:
        PolicyRefused: It may not.
        InputRejected: The platform does not have the service.
        DependencyFailed: Somebody who must be asked did not answer; nothing follows.
    """
    plan, decision = incident.plan, incident.decision
    assert plan is not None
    intent = stored_intent(context, incident, EffectKind.APPLY)
    look = "look at who writes to the store"
    if intent is None:
        raise refused(plan, "the control database holds no intent of it", look)
    if intent.closed:
        raise refused(plan, f"it was refused before: {intent.closed}", "approve the next plan")
    if not intent.etag:
        raise refused(plan, "its approval was given to an earlier version of this program", "approve the next plan")
    if decision is None or intent.decision != decision.id:
        raise refused(plan, "the approval was used before, for another effect", look)
    _check_allowed(context, incident, plan, now)
    live = _described(context, plan)
    if intent.target != live.target:
        why = f"{incident.service!r} changed since the intent was stored (now generation {live.generation})"
        raise refused(plan, why, "look at the new plan and approve it")
    _check_as_shown(context, incident, plan, live)
    return intent


def _apply(platform: Platform, intent: Intent) -> Operation:
    try:
        return platform.apply(_order(intent))
    except (DependencyFailed, StateConflict):
        found = platform.find(intent.service, intent.key)
        if found is None:
            raise
        return found


def _order(intent: Intent) -> Order:
    return Order(
        service=intent.service,
        incident=intent.incident,
        effect_key=intent.key,
        revision=intent.revision,
        etag=intent.etag,
        actions=intent.actions,
        staged=intent.staged,
    )


def _started(
    context: StageContext, incident: Incident, effect: Effect, operation: Operation, now: datetime
) -> StageOutcome:
    assert incident.execution is not None
    started = effect.with_(state=EffectState.STARTED, operation=operation.name)
    due = now + timedelta(seconds=context.rules.times.poll_s)
    changed = incident.with_(execution=incident.execution.with_effect(started), due_at=due)
    put_on_record(context, incident, effect, now)
    save(context, changed, f"revision {effect.revision} is coming up", now=now)
    return StageOutcome.NOTED


def _not_called(context: StageContext, incident: Incident, effect: Effect, why: str, now: datetime) -> StageOutcome:
    assert incident.execution is not None
    close_effect(context, incident, EffectKind.APPLY, why)
    failed = effect.with_(state=EffectState.FAILED, message=why, finished_at=now)
    measured = Measurement(check=Check.READY, good=False, says=f"not applied: {why}", at=now)
    moved = incident.move(
        Phase.VERIFYING,
        now=now,
        due_at=now,
        execution=incident.execution.with_effect(failed),
        verification=Verification(since=now, until=now, measurements=(measured,)),
    )
    save(context, moved, f"not applied: {why}", now=now)
    return StageOutcome.MOVED
