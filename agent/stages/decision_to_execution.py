"""An approved plan is looked at once more, and the intent of its change is stored."""

from datetime import datetime, timedelta
from typing import Final

from agent.core.change.execution import Effect, EffectKind, Execution, Intent, revision_name
from agent.core.change.verification import Verification
from agent.core.decision.limit_use import limit_uses, longest_window, next_slot
from agent.core.incident.incident import INVALID, Incident, Remedy
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Plan
from agent.core.service.serving import Live
from agent.core.value import canonical
from agent.ports.clock import machine_time
from agent.ports.control import GroupRate, RateLimit, ReceiptUse
from agent.ports.stage_context import StageContext
from agent.ports.store import change_head, head_key
from agent.stages.shared.approval import refused
from agent.stages.shared.approved_plan import check_allowed, check_as_shown, describe_service, platform_order
from agent.stages.shared.budget import check_budget
from agent.stages.shared.commit import save
from agent.stages.shared.effects import REFUSALS, close_effect, key_of
from agent.stages.shared.kill_switch import changes_stopped
from agent.stages.shared.outcome import StageOutcome

_WAITS: Final = {
    ReceiptUse.RATE_LIMITED: "the limit of changes is reached",
    ReceiptUse.STALE: "another change began while the budget was checked, so it is checked again",
}


def begin_execution(context: StageContext, incident: Incident) -> StageOutcome:
    """Check receipt, policy, kill switch, limits and live state; then store the intent, then move the incident.

    Any doubt refuses, and the reason is kept. Too many recent changes is no doubt: it waits. What could not be read is
    no doubt either: nothing is decided, and the step is tried again.
    """
    now = context.now_for(incident)
    plan = incident.require_plan()
    try:
        _may(context, incident, plan, now)
        if plan.by_person:
            return _hand_over(context, incident, plan, now)
        live = describe_service(context, plan)
        check_as_shown(context, incident, plan, live)
        begun_before = check_budget(context, plan, live)
    except REFUSALS as refusal:
        return _refuse(context, incident, str(refusal), now)
    barred = _not_valid(context, incident, plan, live)
    if barred:
        return _refuse_for_good(context, incident, plan, barred, now)
    begun = context.control_store().begin(
        _intent(incident, plan, live, now),
        rate_limit=rate_limit(context, incident.service),
        begun_before=begun_before,
    )
    if begun.use in _WAITS:
        return _wait(context, incident, plan, now, _WAITS[begun.use])
    if begun.use is not ReceiptUse.OURS or begun.intent is None:
        before = (
            "for another effect" if begun.use is ReceiptUse.SPENT else "for this very change, which was refused then"
        )
        spent = refused(plan, f"the approval was used before, {before}", "look at who writes to the store")
        return _refuse(context, incident, str(spent), now)
    _intend(context, incident, begun.intent, live, now)
    return StageOutcome.MOVED


def _refuse(context: StageContext, incident: Incident, why: str, now: datetime) -> StageOutcome:
    close_effect(context, incident, EffectKind.APPLY, why)
    save(context, incident.move(Phase.REFUSED, now=now, due_at=now, ended_why=why), why, now=now)
    return StageOutcome.MOVED


def _wait(context: StageContext, incident: Incident, plan: Plan, now: datetime, why: str) -> StageOutcome:
    """It may not begin now; while it waits, its approval may run out."""
    free_at = next_slot_at(context, plan.target.service, now) or now + timedelta(seconds=context.rules.times.poll_s)
    if incident.due_at != free_at:
        what = f"waits until {free_at:%H:%M:%S} UTC: {why}"
        save(context, incident.with_(due_at=free_at), what, now=now, wake=False)
    return StageOutcome.WAITING


def rate_limit(context: StageContext, service: str) -> RateLimit:
    """Return how many changes the policy allows: over all services, and of the groups to which one belongs.

    Raises:
        DependencyFailed: The time could not be read; nothing may start.
    """
    policy = context.rules.policy
    limits = policy.limits_of(service)
    return RateLimit(
        window_s=max([policy.change_window_s, *(m.change_window_s for m in limits if m.change_window_s is not None)]),
        per_hour=policy.changes_per_hour,
        groups=tuple(
            GroupRate(services=m.services, per_hour=m.changes_per_hour)
            for m in limits
            if m.changes_per_hour is not None
        ),
        not_after=machine_time(context.clock),
    )


def next_slot_at(context: StageContext, service: str, now: datetime) -> datetime | None:
    """Return when a change of this service may start, or None for at once.

    Raises:
        DependencyFailed: The limits could not be read; nothing may start.
    """
    policy, now = context.rules.policy, rate_limit(context, service).counted_at(now)
    changes = context.control_store().limits(service, now - longest_window(policy, service))
    return next_slot(
        limit_uses(policy, service, of_service=changes.service_changes, of_all=changes.by_service, now=now)
    )


def _may(context: StageContext, incident: Incident, plan: Plan, now: datetime) -> None:
    check_allowed(context, incident, plan, now)
    if not incident.may_change and not plan.by_person:
        raise refused(plan, "it belongs to a replay that changes nothing", "replay with --live")
    stopped = changes_stopped(context)
    if stopped:
        raise refused(plan, stopped, "make the change by hand; this incident asks no more")


def _not_valid(context: StageContext, incident: Incident, plan: Plan, live: Live) -> str:
    """Let the platform check the change without making it; return why it would refuse, or nothing.

    It stands here and not before the question: whoever asks may only look at services, and a dry run needs the right
    to update them.
    """
    try:
        context.require_platform(plan.target.service).validate(
            platform_order(_intent(incident, plan, live, plan.made_at))
        )
    except REFUSALS as error:
        return f"the platform would refuse the change: {error}"
    return ""


def _refuse_for_good(context: StageContext, incident: Incident, plan: Plan, why: str, now: datetime) -> StageOutcome:
    """What the platform refuses it would refuse again: the same actions are not proposed any more."""
    if incident.request is not None:
        return _refuse(context, incident, why, now)
    invalid = Remedy(proposal=plan.proposal, cause=plan.cause, ended=INVALID, at=now, incident=incident.id)
    moved = incident.move(
        Phase.REFUSED, now=now, due_at=now, ended_why=why, remedies=(*incident.remedies, invalid)[-32:]
    )
    close_effect(context, incident, EffectKind.APPLY, why)
    save(context, moved, why, now=now)
    return StageOutcome.MOVED


def _intent(incident: Incident, plan: Plan, live: Live, now: datetime) -> Intent:
    key = key_of(incident, EffectKind.APPLY)
    return Intent(
        key=key,
        kind=EffectKind.APPLY,
        incident=incident.id,
        service=incident.service,
        decision=incident.require_decision().id,
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
    effect = Effect(
        key=intent.key, kind=intent.kind, etag=intent.etag, revision=intent.revision, intended_at=intent.applied_at
    )
    execution = Execution(
        plan=incident.require_plan().id,
        effects=(effect,),
        revision_before=intent.prior_revision,
        revision_after=intent.revision,
        prior_template=intent.prior_template,
        prior_traffic=intent.prior_traffic,
        prior_ready=live.ready,
        served_by_older=live.served_by_older,
    )
    moved = incident.move(Phase.APPLYING, now=now, due_at=now, execution=execution)
    requested = (change_head(incident.run, incident.service),) if incident.request is not None else ()
    heads = (head_key(incident.run, incident.service, intent.revision), *requested)
    save(context, moved, f"intends revision {intent.revision}", now=now, heads=heads)


def _hand_over(context: StageContext, incident: Incident, plan: Plan, now: datetime) -> StageOutcome:
    """A person does it; we watch for a later sign of health."""
    execution = Execution(
        plan=plan.id, effects=(), revision_before=None, prior_template="", prior_traffic="", prior_ready=None
    )
    times = context.rules.times
    until = now + timedelta(seconds=times.cool_off_s if incident.task_done is None else times.verify_s)
    moved = incident.move(Phase.APPLYING, now=now, execution=execution).move(
        Phase.VERIFYING, now=now, verification=Verification(since=now, until=until), due_at=now
    )
    save(context, moved, "a person does this; watching for a healthy signal", now=now)
    return StageOutcome.MOVED
