"""An effect is made at most once: found by its stamp, or called under the service's lease after the last check."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from agent.core.change.execution import EffectKind, EffectState, Intent, effect_key, revision_name
from agent.core.incident.incident import Incident
from agent.core.plan.action import LifecycleOperation
from agent.core.plan.lifecycle import lifecycle_of
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.control import Lease, LeaseEnd
from agent.ports.platform import LeaseOver, NotDeployed, Operation, Platform
from agent.ports.stage_context import StageContext
from agent.ports.tracing import Kind
from agent.stages.shared.commit import save
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.service_lease import final_preflight, require_unchanged, service_lease

REFUSALS: Final = (InputRejected, PolicyRefused)
GONE: Final = "gone"  # names the operation of an effect that left nothing to read it back from
_LEAVES_NOTHING: Final = frozenset(
    {(LifecycleOperation.DELETE, EffectKind.APPLY), (LifecycleOperation.CREATE, EffectKind.ROLL_BACK)}
)


Call = Callable[[Platform, Intent, LeaseEnd], Operation]


def perform(
    context: StageContext,
    incident: Incident,
    kind: EffectKind,
    *,
    check: Callable[[Platform], Intent | StageOutcome],
    call: Call,
    on_started: Callable[[Operation], StageOutcome],
    on_refused: Callable[[SreError], StageOutcome],
) -> StageOutcome:
    """Make an effect of the incident's present plan, or find that it was made already.

    Args:
        context: Of the owner that may change services.
        incident: As it was loaded; where it was written since, nothing is called.
        kind: Which effect.
        check: Returns the stored intent that may be carried out now, or what it did instead; raises where it may not.
        call: Calls the platform, right after kill switch and lease were asked for the last time, with the lease's end.
        on_started: Notes the operation, made now or found.
        on_refused: Closes the effect; under the lease, so that no other worker makes it meanwhile.

    Raises:
        StateConflict: The incident was written meanwhile, or the lease ended; load it again.
        DependencyFailed: Somebody who must be asked did not answer; nothing follows, and the step is tried again.
    """
    platform = context.require_platform(incident.service)
    try:
        found = find_effect(context, platform, incident, kind)
    except REFUSALS as error:
        return on_refused(error)
    if found is not None and not found.remains:
        return on_started(found)
    with service_lease(context, incident.service) as lease:
        if lease is None:
            return StageOutcome.WAITING  # it stays due; the tick wakes us again
        require_unchanged(context, incident)
        try:
            made = _made(context, incident, kind, lease, check=check, call=call)
        except REFUSALS as error:
            return on_refused(error)
        return made if isinstance(made, StageOutcome) else on_started(made)


def _made(
    context: StageContext,
    incident: Incident,
    kind: EffectKind,
    lease: Lease,
    *,
    check: Callable[[Platform], Intent | StageOutcome],
    call: Call,
) -> Operation | StageOutcome:
    platform = context.require_platform(incident.service)
    try:
        intent = check(platform)
    except REFUSALS:
        found = find_effect(context, platform, incident, kind)  # a rival's call may have landed
        if found is None:
            raise
        return found
    if isinstance(intent, StageOutcome):
        return intent
    stopped = final_preflight(context, lease)
    if stopped:
        raise effect_refused(incident, stopped)
    return _called(context, incident, intent, lambda: call(platform, intent, LeaseEnd(lease, context.clock)))


def find_effect(context: StageContext, platform: Platform, incident: Incident, kind: EffectKind) -> Operation | None:
    """Return the operation of an effect of the present plan, or None where there is no trace of it.

    Where the service is not there, a deletion whose intent is stored is done, and so is the roll-back of a creation:
    nobody else's deletion would leave another state.

    Raises:
        NotDeployed: The service is gone, and the effect should have left it.
        DependencyFailed: The platform or the control database did not answer.
    """
    try:
        return platform.find(incident.service, key_of(incident, kind))
    except NotDeployed:
        operation = lifecycle_of(incident.require_plan().actions)
        if (operation, kind) == (LifecycleOperation.CREATE, EffectKind.APPLY):
            return None
        if (operation, kind) not in _LEAVES_NOTHING or stored_intent(context, incident, kind) is None:
            raise
        return poll_operation(platform, GONE)


def _called(context: StageContext, incident: Incident, intent: Intent, call: Callable[[], Operation]) -> Operation:
    """Call the platform; where its answer was lost, find what it did.

    Raises:
        PolicyRefused: Somebody changed the service since the intent was stored.
        LeaseOver: It was not sent. Whoever has the lease now decides; the effect stays open.
        DependencyFailed: Nobody knows whether it was sent, and there is no trace of it; the step is tried again.
    """
    try:
        with context.tracer.span(
            f"platform {intent.kind.value}", kind=Kind.CLIENT, attributes=_about(incident, intent)
        ):
            return call()
    except (DependencyFailed, StateConflict) as error:
        found = find_effect(context, context.require_platform(incident.service), incident, intent.kind)
        if found is not None and not (found.remains and isinstance(error, DependencyFailed)):
            return found
        if isinstance(error, DependencyFailed | LeaseOver):
            raise
        raise PolicyRefused(error.what, why=error.why, hint=error.hint) from error


def _about(incident: Incident, intent: Intent) -> dict[str, str]:
    about = {"sre_agent.platform": incident.platform, "sre_agent.service": incident.service}
    return about | {"sre_agent.effect": intent.kind.value, "sre_agent.revision": intent.revision}


def effect_refused(incident: Incident, why: str) -> PolicyRefused:
    """Return the refusal of an effect."""
    return PolicyRefused(f"{incident.service!r} was not changed", why=why, hint="check the service and decide manually")


def key_of(incident: Incident, kind: EffectKind) -> str:
    """Return the key of an effect of the incident's present plan."""
    return effect_key(incident.id, incident.require_plan().digest, kind)


def stored_intent(context: StageContext, incident: Incident, kind: EffectKind) -> Intent | None:
    """Return what the control database holds of an effect, or None: then nobody may make it.

    The key is taken over the incident's id and the whole plan, so a plan that was changed after its approval finds
    nothing. An intent from before targets were kept is completed from the plan that its key covers.

    Raises:
        DependencyFailed: The control database did not answer; nothing may follow.
    """
    plan = incident.require_plan()
    intent = context.control_store().intent(key_of(incident, kind))
    if intent is None or intent.kind is not kind or intent.service != incident.service:
        return None
    if intent.target is not None:
        return intent
    return intent.with_(
        incident=incident.id,
        plan_digest=plan.digest,
        actions=plan.actions,
        staged=plan.staged,
        target=plan.target,
        revision=revision_name(incident.service, intent.key),
        prior_revision=incident.execution.revision_before if incident.execution is not None else None,
    )


def valid_change(context: StageContext, incident: Incident, now: datetime) -> Intent:
    """Return what the control database holds of the change that is to be followed or undone.

    Raises:
        PolicyRefused: It holds nothing, or nothing that is valid any more.
        DependencyFailed: The control database did not answer; nothing may follow.
    """
    applied = stored_intent(context, incident, EffectKind.APPLY)
    if applied is None:
        raise effect_refused(incident, "the control database holds no change of ours that it would follow")
    if not applied.undo_valid(now):
        made = f"our change was made at {applied.applied_at:%Y-%m-%d %H:%M} UTC, over 24 hours ago"
        raise effect_refused(incident, made)
    return applied


def close_effect(context: StageContext, incident: Incident, kind: EffectKind, why: str) -> None:
    """Close an effect of the present plan for good; before the incident moves, so that nobody can take it up again.

    Raises:
        DependencyFailed: It may still be open; the incident must not move.
    """
    context.control_store().close_intent(key_of(incident, kind), why[:500])


def note_started(
    context: StageContext, incident: Incident, kind: EffectKind, operation: Operation, what: str, *, now: datetime
) -> StageOutcome:
    """Put on record that an effect was started, then save it; who finds it started already writes no second row."""
    effect = incident.require_effect(kind)
    context.control_store().append(
        at=now,
        kind=f"effect.{kind}",
        incident=incident.id,
        who="on_decision",
        body=f"{effect.key} {effect.revision}",
        once=True,
    )
    at = effect.started_at or context.now_for(incident)  # later than ``now``: calls take their time
    started = incident.with_effect(kind, state=EffectState.STARTED, operation=operation.name, message="", started_at=at)
    due = now + timedelta(seconds=context.rules.times.poll_s)
    save(context, started.with_(due_at=due), what, now=now)
    return StageOutcome.NOTED


def call_again(
    context: StageContext,
    incident: Incident,
    kind: EffectKind,
    what: str,
    *,
    now: datetime,
    heads: tuple[str, ...] = (),
) -> StageOutcome:
    """Wake whoever may change services: the same call does what remains of an effect, which is kept at the effect."""
    again = incident.with_effect(kind, state=EffectState.INTENDED, message=what)
    save(context, again.with_(due_at=now), what, now=now, heads=heads)
    return StageOutcome.NOTED


def poll_operation(platform: Platform, name: str | None) -> Operation:
    """Return how far a started operation has come; not done and unknown where the platform will not say.

    Raises:
        DependencyFailed: The platform did not answer; ask again.
    """
    assert name is not None, "an operation is polled once it was started"
    if name == GONE:
        return Operation(name=GONE, done=True, ok=True, says="the platform does not have the service any more")
    try:
        return platform.operation(name)
    except REFUSALS as error:  # a service that is gone or closed to us tells nothing, for good or bad
        return Operation(name=name, done=False, ok=None, says=str(error))
