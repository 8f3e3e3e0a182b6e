"""An approved plan is looked at once more, its intent is stored, and the platform is called at most once."""

from datetime import datetime, timedelta

from agent.core.action import applied, difference
from agent.core.execution import Effect, EffectKind, EffectState, Execution, effect_key, revision_name
from agent.core.incident import INVALID, Incident, Remedy
from agent.core.phase import Phase
from agent.core.plan import Plan, Rollout
from agent.core.serving import Live
from agent.core.value import canonical
from agent.core.verification import Check, Measurement, Verification
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.control import Lease, Use
from agent.ports.platform import Operation, Order, Platform
from agent.ports.store import head_key
from agent.ports.world import World
from agent.stages.approval import check_approval, refused
from agent.stages.commit import save
from agent.stages.effects import kill_switch_says, put_on_record, room, room_at, why_not
from agent.stages.reason import Did
from agent.stages.turn import at_the_brink, turn, unchanged


def begin_execution(world: World, incident: Incident) -> Did:
    """Check receipt, policy, kill switch, limits and live state; then store the intent.

    Any doubt refuses, and the reason is kept. Too many changes lately is no doubt: it waits.
    """
    now = max(world.clock.now(), incident.phase_at)
    plan, decision = incident.plan, incident.decision
    assert plan is not None
    assert decision is not None
    try:
        _may(world, incident, plan, now)
        if plan.by_person:
            return _hand_over(world, incident, plan, now)
        live = _same_state(world, plan)
    except (PolicyRefused, InputRejected) as refusal:
        save(world, incident.move(Phase.REFUSED, now=now, due_at=now, ended_why=str(refusal)), str(refusal), now=now)
        return Did.MOVED
    barred = _not_valid(world, incident, plan, live)
    if barred:
        return _refuse_for_good(world, incident, plan, barred, now)
    key = effect_key(incident.id, plan.digest, EffectKind.APPLY)
    used = world.control_store().use_receipt(decision.id, key, service=plan.target.service, at=now, room=room(world))
    if used is Use.NO_ROOM:
        return _wait(world, incident, plan, now)
    if used is not Use.OURS:
        spent = refused(plan, "the approval was used before, for another effect", "look at who writes to the store")
        save(world, incident.move(Phase.REFUSED, now=now, due_at=now, ended_why=str(spent)), str(spent), now=now)
        return Did.MOVED
    _intend(world, incident, plan, live, now)
    return Did.MOVED


def _wait(world: World, incident: Incident, plan: Plan, now: datetime) -> Did:
    """Too many changes lately; while it waits, its approval may run out."""
    free_at = room_at(world, plan.target.service, now) or now + timedelta(seconds=world.knowledge.times.poll_s)
    if incident.due_at != free_at:
        what = f"waits until {free_at:%H:%M:%S} UTC: the limit of changes is reached"
        save(world, incident.with_(due_at=free_at), what, now=now, wake=False)
    return Did.WAITING


def _may(world: World, incident: Incident, plan: Plan, now: datetime) -> None:
    decision = incident.decision
    assert decision is not None
    check_approval(world, incident, plan, decision)
    if now >= decision.expires_at:
        raise refused(plan, f"the approval expired at {decision.expires_at:%H:%M:%S} UTC", "approve the next plan")
    if not incident.may_change and not plan.by_person:
        raise refused(plan, "it belongs to a replay that changes nothing", "replay with --live")
    stopped = kill_switch_says(world)
    if stopped:
        mend = "turn it off (sre-agent stop --off) and make the change by hand; this incident asks no more"
        raise refused(plan, stopped, mend)


def _same_state(world: World, plan: Plan) -> Live:
    live = world.live(plan.target.service)
    if live is None:
        raise refused(plan, "there is no adapter for its platform", "do it by hand")
    if live.target != plan.target:
        raise refused(
            plan,
            f"{plan.target.service!r} changed since the plan was made "
            f"(generation {plan.target.generation}, now {live.generation})",
            "look at the new plan and approve it",
        )
    if difference(live.config, applied(live.config, plan.actions)) != plan.difference:
        raise refused(
            plan, "it does not show what it would change", "look at the new plan, and at who writes to the store"
        )
    return live


def _not_valid(world: World, incident: Incident, plan: Plan, live: Live) -> str:
    """Let the platform check the change without making it; return why it would refuse, or nothing.

    It stands here and not before the question: whoever asks may only look at services, and a dry run needs the right
    to update them.
    """
    platform = world.platform_of(plan.target.service)
    assert platform is not None
    effect = _effect(incident, plan, live, plan.made_at)
    try:
        platform.validate(_order(incident, plan, effect))
    except (InputRejected, PolicyRefused) as error:
        return f"the platform would refuse the change: {error}"
    return ""


def _refuse_for_good(world: World, incident: Incident, plan: Plan, why: str, now: datetime) -> Did:
    """What the platform refuses it would refuse again: the same actions are not proposed any more."""
    invalid = Remedy(proposal=plan.proposal, cause=plan.cause, ended=INVALID, at=now, incident=incident.id)
    moved = incident.move(
        Phase.REFUSED, now=now, due_at=now, ended_why=why, remedies=(*incident.remedies, invalid)[-32:]
    )
    save(world, moved, why, now=now)
    return Did.MOVED


def _intend(world: World, incident: Incident, plan: Plan, live: Live, now: datetime) -> None:
    traffic = canonical([t.model_dump(mode="json") for t in live.traffic]).decode()
    effect = _effect(incident, plan, live, now)
    key, revision = effect.key, effect.revision
    execution = Execution(
        plan=plan.id,
        effects=(effect,),
        revision_before=live.latest_ready_revision,
        revision_after=revision,
        prior_template=live.template,
        prior_traffic=traffic,
        prior_ready=live.ready,
        served_by_older=live.served_by_older,
    )
    world.control_store().keep_prior(key, live.template, traffic)
    moved = incident.move(Phase.APPLYING, now=now, due_at=now, execution=execution)
    heads = (head_key(incident.run, incident.service, revision),)
    save(world, moved, f"intends revision {revision}", now=now, heads=heads)


def _effect(incident: Incident, plan: Plan, live: Live, at: datetime) -> Effect:
    key = effect_key(incident.id, plan.digest, EffectKind.APPLY)
    revision = revision_name(plan.target.service, key)
    return Effect(key=key, kind=EffectKind.APPLY, etag=live.etag, revision=revision, intended_at=at)


def _hand_over(world: World, incident: Incident, plan: Plan, now: datetime) -> Did:
    """A person does it; we watch for a later sign of health."""
    execution = Execution(
        plan=plan.id, effects=(), revision_before=None, prior_template="", prior_traffic="", prior_ready=None
    )
    until = now + timedelta(seconds=world.knowledge.times.cool_off_s)
    moved = incident.move(Phase.APPLYING, now=now, execution=execution).move(
        Phase.VERIFYING, now=now, verification=Verification(since=now, until=until), due_at=now
    )
    save(world, moved, "a person does this; watching for a healthy signal", now=now)
    return Did.MOVED


def call_platform(world: World, incident: Incident) -> Did:
    """Make the change whose intent is stored, or find that it was made already.

    The etag is the one of the intent; it is never read again, so that a change by somebody else ends this one.
    """
    now = max(world.clock.now(), incident.phase_at)
    execution, plan = incident.execution, incident.plan
    assert execution is not None
    assert plan is not None
    effect = execution.effect(EffectKind.APPLY)
    platform = world.platform_of(incident.service)
    assert effect is not None
    assert platform is not None
    try:
        found = platform.find(incident.service, effect.key)
    except (InputRejected, PolicyRefused) as error:
        return _not_called(world, incident, effect, str(error), now)
    if found is not None:
        return _started(world, incident, effect, found, now)
    with turn(world, incident.service) as lease:
        if lease is None:
            return Did.WAITING  # it stays due; the tick wakes us again
        unchanged(world, incident)
        return _call(world, incident, effect, lease, now)


def _call(world: World, incident: Incident, effect: Effect, lease: Lease, now: datetime) -> Did:
    platform = world.platform_of(incident.service)
    assert platform is not None
    assert incident.plan is not None
    barred = _last_look(world, incident, effect, now) or at_the_brink(world, lease)
    if barred:
        return _not_called(world, incident, effect, barred, now)
    try:
        found = _apply(platform, incident, incident.plan, effect)
    except (StateConflict, InputRejected, PolicyRefused) as error:
        return _not_called(world, incident, effect, str(error), now)
    return _started(world, incident, effect, found, now)


def _last_look(world: World, incident: Incident, effect: Effect, now: datetime) -> str:
    """Return why the call must not be made, or nothing; the kill switch is read last."""
    barred = why_not(world, incident, effect)
    if barred:
        return barred
    assert incident.decision is not None
    if now >= incident.decision.expires_at:
        return f"the approval expired at {incident.decision.expires_at:%H:%M:%S} UTC"
    control = world.control_store()
    try:
        used = control.use_receipt(incident.decision.id, effect.key, service=incident.service, at=now, room=room(world))
    except SreError as error:
        return f"the control store did not answer: {error.why}"
    if used is not Use.OURS:
        return "the approval was used before, for another effect" if used is Use.SPENT else "too many changes lately"
    return kill_switch_says(world)


def _apply(platform: Platform, incident: Incident, plan: Plan, effect: Effect) -> Operation:
    try:
        return platform.apply(_order(incident, plan, effect))
    except (DependencyFailed, StateConflict):
        found = platform.find(incident.service, effect.key)
        if found is None:
            raise
        return found


def _order(incident: Incident, plan: Plan, effect: Effect) -> Order:
    return Order(
        service=incident.service,
        incident=incident.id,
        effect_key=effect.key,
        revision=effect.revision,
        etag=effect.etag,
        actions=plan.actions,
        staged=plan.rollout is Rollout.STAGED,
    )


def _started(world: World, incident: Incident, effect: Effect, operation: Operation, now: datetime) -> Did:
    assert incident.execution is not None
    started = effect.with_(state=EffectState.STARTED, operation=operation.name)
    due = now + timedelta(seconds=world.knowledge.times.poll_s)
    changed = incident.with_(execution=incident.execution.with_effect(started), due_at=due)
    put_on_record(world, incident, effect, now)
    save(world, changed, f"revision {effect.revision} is coming up", now=now)
    return Did.NOTED


def _not_called(world: World, incident: Incident, effect: Effect, why: str, now: datetime) -> Did:
    assert incident.execution is not None
    failed = effect.with_(state=EffectState.FAILED, message=why, finished_at=now)
    measured = Measurement(check=Check.READY, good=False, says=f"not applied: {why}", at=now)
    moved = incident.move(
        Phase.VERIFYING,
        now=now,
        due_at=now,
        execution=incident.execution.with_effect(failed),
        verification=Verification(since=now, until=now, measurements=(measured,)),
    )
    save(world, moved, f"not applied: {why}", now=now)
    return Did.MOVED
