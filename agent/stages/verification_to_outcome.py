"""A verdict ends the incident well, or orders the way back; a roll-back is verified like any change."""

from datetime import datetime, timedelta

from agent.core.change.drift import drift_since
from agent.core.change.execution import Effect, EffectKind, EffectState, Execution, Intent, revision_name
from agent.core.change.verification import Check, Measurement, Verdict
from agent.core.incident.correlation import joined
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.service.serving import Live
from agent.core.text.safe_text import shortened
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.control import Lease
from agent.ports.platform import Operation, Platform, Restore
from agent.ports.stage_context import StageContext
from agent.ports.store import head_key
from agent.stages.shared.approval import check_approval
from agent.stages.shared.commit import save
from agent.stages.shared.effects import changes_stopped, close_effect, key_of, put_on_record, stored_intent
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.poll_operation import poll_operation
from agent.stages.shared.remedies import tried
from agent.stages.shared.service_lease import final_preflight, require_unchanged, service_lease
from agent.stages.watch_undo import give_up, rolled_back


def verification_to_outcome(context: StageContext, incident: Incident) -> StageOutcome:
    """Resolve what recovered; order the roll-back of everything else."""
    now = max(context.clock.now(), incident.phase_at)
    verification, plan = incident.verification, incident.plan
    assert verification is not None
    assert plan is not None
    if verification.verdict is Verdict.RECOVERED:
        if plan.staged and not _shifted(incident):
            return _order_shift(context, incident, now)
        ended = incident.move(
            Phase.RESOLVED,
            now=now,
            due_at=None,
            ended_why=verification.why,
            remedies=tried(incident, now),
            joined=joined(context.store.signals(incident.id), context.rules.matcher, cause=incident.cause),
        )
        save(context, ended, f"resolved: {verification.why}", now=now)
        return StageOutcome.MOVED
    moved = incident.move(Phase.ROLLING_BACK, now=now, due_at=now)
    save(context, moved, f"rolling back: {shortened(verification.why, 300)}", now=now)
    return StageOutcome.MOVED


def _shifted(incident: Incident) -> bool:
    effect = incident.execution.effect(EffectKind.SHIFT) if incident.execution else None
    return effect is not None and effect.state is EffectState.DONE


def _order_shift(context: StageContext, incident: Incident, now: datetime) -> StageOutcome:
    """Wake whoever may change services; it looks at service and revision itself before it does anything."""
    assert incident.execution is not None
    assert incident.execution.revision_after is not None
    effect = Effect(
        key=key_of(incident, EffectKind.SHIFT),
        kind=EffectKind.SHIFT,
        etag="",
        revision=incident.execution.revision_after,
        intended_at=now,
    )
    changed = incident.with_(execution=incident.execution.with_effect(effect), due_at=now)
    save(context, changed, f"{effect.revision} is good; it gets the traffic", now=now)
    return StageOutcome.NOTED


def shift_traffic(context: StageContext, incident: Incident) -> StageOutcome:
    """Give the traffic to the revision that was verified without it.

    That it was verified is the word of the incident database, so it is measured once more by whoever shifts.
    """
    now = max(context.clock.now(), incident.phase_at)
    effect = incident.execution.effect(EffectKind.SHIFT) if incident.execution else None
    platform = context.platform_of(incident.service)
    assert effect is not None
    assert platform is not None
    if effect.operation:
        operation = poll_operation(platform, effect.operation)
        known = None if operation.says and operation.ok is None else operation
        return _end_shift(context, incident, effect, known, says=operation.says, now=now)
    with service_lease(context, incident.service) as lease:
        if lease is None:
            return StageOutcome.WAITING
        require_unchanged(context, incident)
        try:
            intent = _may_shift(context, incident, platform, now)
            if intent is None:
                return _measure_again(context, incident, effect, now)
            _check_brink(context, incident, lease)
            operation = _call_shift(platform, intent)
        except (InputRejected, PolicyRefused) as error:
            return _end_shift(context, incident, effect, None, says=str(error), now=now)
        return _end_shift(context, incident, effect, operation, says=operation.says, now=now)


def _may_shift(context: StageContext, incident: Incident, platform: Platform, now: datetime) -> Intent | None:
    """Return the stored intent of the shift, or None while the revision could not be measured.

    Raises:
        PolicyRefused: It must not be made.
        DependencyFailed: Somebody who must be asked did not answer; nothing follows.
    """
    plan, decision = incident.plan, incident.decision
    assert plan is not None
    applied = _open_change(context, incident, now)
    if not applied.staged or applied.closed:
        raise _refused(incident, applied.closed or "the approved plan has no staged revision")
    if decision is None or decision.id != applied.decision:
        raise _refused(incident, "nobody approved it")
    check_approval(context, incident, plan, decision)
    before = stored_intent(context, incident, EffectKind.SHIFT)
    live = platform.describe(incident.service)
    theirs = drift_since(applied, live, shifted=before is not None)
    if theirs:
        raise _refused(incident, theirs)
    if before is None and not _measured_good(incident, platform.measure(incident.service, applied.revision)):
        return None
    key = key_of(incident, EffectKind.SHIFT)
    intent = applied.with_(key=key, kind=EffectKind.SHIFT, etag=live.etag)
    stored = before or context.control_store().add_intent(intent)
    if stored is None or stored.closed:
        raise _refused(incident, "it was refused before")
    return stored


def _measured_good(incident: Incident, measured: tuple[Measurement, ...]) -> bool:
    """Whether it is ready and answers; False where that could not be measured.

    Raises:
        PolicyRefused: It is not.
    """
    answers = {m.check: m for m in measured if m.check in {Check.READY, Check.COMPLETION}}
    bad = next((m for m in answers.values() if m.good is False), None)
    if bad is not None:
        raise _refused(incident, bad.says)
    return len(answers) == 2 and all(m.good for m in answers.values())


def _measure_again(context: StageContext, incident: Incident, effect: Effect, now: datetime) -> StageOutcome:
    times = context.rules.times
    if now >= effect.intended_at + timedelta(seconds=times.verify_s):
        return _end_shift(context, incident, effect, None, says="the new revision could not be measured again", now=now)
    due = now + timedelta(seconds=times.poll_s)
    save(context, incident.with_(due_at=due), "", now=now, tell=False, wake=False)
    return StageOutcome.WAITING


def _call_shift(platform: Platform, intent: Intent) -> Operation:
    try:
        return platform.shift(intent.service, revision=intent.revision, etag=intent.etag, effect_key=intent.key)
    except StateConflict as error:
        raise PolicyRefused(error.what, why=error.why, mend=error.mend) from error


def _check_brink(context: StageContext, incident: Incident, lease: Lease) -> None:
    """Refuse where the kill switch is on; see :func:`agent.stages.shared.service_lease.final_preflight`."""
    stopped = final_preflight(context, lease)
    if stopped:
        raise _refused(incident, stopped)


def _open_change(context: StageContext, incident: Incident, now: datetime) -> Intent:
    """Return what the control database holds of the change that is to be followed or undone.

    Raises:
        PolicyRefused: It holds nothing, or nothing that is valid any more.
    """
    applied = stored_intent(context, incident, EffectKind.APPLY)
    if applied is None:
        raise _refused(incident, "the control database holds no change of ours that it would follow")
    if not applied.undo_valid(now):
        raise _refused(incident, f"our change was made at {applied.applied_at:%Y-%m-%d %H:%M} UTC, over 24 hours ago")
    return applied


def _refused(incident: Incident, why: str) -> PolicyRefused:
    return PolicyRefused(
        f"{incident.service!r} was not changed", why=why, mend="look at the service and decide by hand"
    )


def _end_shift(
    context: StageContext, incident: Incident, effect: Effect, operation: Operation | None, *, says: str, now: datetime
) -> StageOutcome:
    assert incident.execution is not None
    assert incident.verification is not None
    if operation is not None and not operation.done:
        started = effect.with_(state=EffectState.STARTED, operation=operation.name)
        due = now + timedelta(seconds=context.rules.times.poll_s)
        changed = incident.with_(execution=incident.execution.with_effect(started), due_at=due)
        save(context, changed, "", now=now, tell=False, wake=False)
        return StageOutcome.WAITING
    good = operation is not None and operation.ok is True
    if not good:
        close_effect(context, incident, EffectKind.SHIFT, says)
    state = EffectState.DONE if good else EffectState.FAILED
    ended = incident.execution.with_effect(effect.with_(state=state, message=says[:2000], finished_at=now))
    verification = incident.verification
    if not good:
        verification = verification.with_(verdict=Verdict.NOT_RECOVERED, why=f"the traffic was not shifted: {says}")
    changed = incident.with_(execution=ended, verification=verification, due_at=now)
    save(
        context,
        changed,
        "the traffic is shifted" if good else f"the traffic was not shifted: {shortened(says, 300)}",
        now=now,
    )
    return StageOutcome.NOTED


def undo(context: StageContext, incident: Incident) -> StageOutcome:
    """Put the prior template and traffic back; covered by the approval of the change itself.

    It rests on nothing but what the control database holds of the change, which must bear our stamp and be the last
    one. Exempt from windows and limits; valid for 24 hours after the change. The kill switch stops it too. Where it
    is not made, a person is told.
    """
    now = max(context.clock.now(), incident.phase_at)
    platform = context.platform_of(incident.service)
    if incident.execution is None or incident.execution.effect(EffectKind.APPLY) is None or platform is None:
        return rolled_back(context, incident, "nothing was changed by us", now)
    try:
        if platform.find(incident.service, key_of(incident, EffectKind.APPLY)) is None:
            close_effect(context, incident, EffectKind.APPLY, "it was rolled back before it was made")
            return rolled_back(context, incident, "the change was never made", now)
        return _undo(context, incident, platform, now)
    except (InputRejected, PolicyRefused) as error:  # gone, closed to us, changed by somebody else, or too late
        return _not_undone(context, incident, str(error), now)


def _undo(context: StageContext, incident: Incident, platform: Platform, now: datetime) -> StageOutcome:
    assert incident.execution is not None
    intent = stored_intent(context, incident, EffectKind.ROLL_BACK) or _intend_undo(context, incident, platform, now)
    if intent.closed:
        raise _refused(incident, f"it was refused before: {intent.closed}")
    effect = incident.execution.effect(EffectKind.ROLL_BACK)
    if effect is None or (effect.key, effect.etag) != (intent.key, intent.etag):
        return _show_undo(context, incident, incident.execution, intent, now)
    found = platform.find(incident.service, intent.key)
    if found is not None:
        return _undoing(context, incident, effect, found, now)
    with service_lease(context, incident.service) as lease:
        if lease is None:
            return StageOutcome.WAITING
        require_unchanged(context, incident)
        found = _put_back(context, incident, intent, lease, now)
    return _undoing(context, incident, effect, found, now)


def _intend_undo(context: StageContext, incident: Incident, platform: Platform, now: datetime) -> Intent:
    """Store the intent of the roll-back, with the etag of now."""
    stopped = changes_stopped(context)
    if stopped:
        raise _refused(incident, stopped)
    applied, live = _still_ours(context, incident, platform, now)
    key = key_of(incident, EffectKind.ROLL_BACK)
    revision = revision_name(incident.service, key)
    undoing = applied.with_(key=key, kind=EffectKind.ROLL_BACK, etag=live.etag, revision=revision, closed="")
    stored = context.control_store().add_intent(undoing)
    if stored is None:
        raise _refused(incident, "it was refused before")
    return stored


def _still_ours(context: StageContext, incident: Incident, platform: Platform, now: datetime) -> tuple[Intent, Live]:
    """Return our change and the service as it is, where nothing but our change stands between it and the prior state.

    Raises:
        PolicyRefused: Somebody changed it since, or the change is too old.
    """
    applied = _open_change(context, incident, now)
    live = platform.describe(incident.service)
    shifted = applied.staged and stored_intent(context, incident, EffectKind.SHIFT) is not None
    theirs = drift_since(applied, live, shifted=shifted)
    if theirs:
        raise _refused(incident, theirs)
    return applied, live


def _show_undo(
    context: StageContext, incident: Incident, execution: Execution, intent: Intent, now: datetime
) -> StageOutcome:
    effect = Effect(key=intent.key, kind=intent.kind, etag=intent.etag, revision=intent.revision, intended_at=now)
    others = tuple(e for e in execution.effects if e.kind is not EffectKind.ROLL_BACK)
    shown = execution.with_(
        effects=(*others, effect), prior_template=intent.prior_template, prior_traffic=intent.prior_traffic
    )
    heads = (head_key(incident.run, incident.service, effect.revision),)
    what = f"intends to put the prior template back as {effect.revision}"
    save(context, incident.with_(execution=shown, due_at=now), what, now=now, heads=heads)
    return StageOutcome.NOTED


def _put_back(context: StageContext, incident: Incident, intent: Intent, lease: Lease, now: datetime) -> Operation:
    platform = context.platform_of(incident.service)
    assert platform is not None
    try:
        _still_ours(context, incident, platform, now)
    except PolicyRefused:
        found = platform.find(incident.service, intent.key)  # a rival's call may have landed
        if found is None:
            raise
        return found
    _check_brink(context, incident, lease)
    return _restore(platform, intent)


def _not_undone(context: StageContext, incident: Incident, why: str, now: datetime) -> StageOutcome:
    close_effect(context, incident, EffectKind.ROLL_BACK, why)
    return give_up(context, incident, f"the roll-back was not made: {why}", now)


def _undoing(
    context: StageContext, incident: Incident, effect: Effect, found: Operation, now: datetime
) -> StageOutcome:
    assert incident.execution is not None
    started = effect.with_(state=EffectState.STARTED, operation=found.name)
    due = now + timedelta(seconds=context.rules.times.poll_s)
    changed = incident.with_(execution=incident.execution.with_effect(started), due_at=due)
    put_on_record(context, incident, effect, now)
    save(context, changed, "the prior template is being put back", now=now)
    return StageOutcome.NOTED


def _restore(platform: Platform, intent: Intent) -> Operation:
    """Call the platform.

    Raises:
        PolicyRefused: Somebody changed the service since the intent was stored.
    """
    order = Restore(
        service=intent.service,
        incident=intent.incident,
        effect_key=intent.key,
        revision=intent.revision,
        etag=intent.etag,
        template=intent.prior_template,
        traffic=intent.prior_traffic,
    )
    try:
        return platform.restore(order)
    except (DependencyFailed, StateConflict) as error:
        found = platform.find(intent.service, intent.key)
        if found is not None:
            return found
        if isinstance(error, DependencyFailed):
            raise
        raise PolicyRefused(error.what, why=error.why, mend=error.mend) from error
