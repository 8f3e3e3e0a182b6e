"""The revision that was verified without traffic gets it, once it was measured again by whoever gives it."""

from datetime import datetime, timedelta

from agent.core.change.drift import drift_since
from agent.core.change.execution import EffectKind, EffectState, Intent
from agent.core.change.verification import Check, Measurement, Verdict
from agent.core.incident.incident import Incident
from agent.core.text.safe_text import shortened
from agent.ports.control import LeaseEnd
from agent.ports.platform import Operation, Platform
from agent.ports.stage_context import StageContext
from agent.stages.shared.approval import check_approval
from agent.stages.shared.commit import poll_again, save
from agent.stages.shared.effects import (
    REFUSALS,
    close_effect,
    effect_refused,
    key_of,
    perform,
    stored_intent,
    valid_change,
)
from agent.stages.shared.outcome import StageOutcome


def shift_traffic(context: StageContext, incident: Incident) -> StageOutcome:
    """Give the traffic to the revision that was verified without it.

    That it was verified is the word of the incident database, so it is measured once more by whoever shifts.
    """
    now = context.now_for(incident)
    effect = incident.require_effect(EffectKind.SHIFT)
    if effect.operation:
        try:
            operation = context.require_platform(incident.service).operation(effect.operation)
        except REFUSALS as error:  # gone, or closed to us
            return _not_shifted(context, incident, str(error), now)
        return _follow(context, incident, operation, now)
    return perform(
        context,
        incident,
        EffectKind.SHIFT,
        check=lambda platform: _may_shift(context, incident, platform, now),
        call=_call,
        on_started=lambda operation: _follow(context, incident, operation, now),
        on_refused=lambda error: _not_shifted(context, incident, str(error), now),
    )


def _call(platform: Platform, intent: Intent, lease_end: LeaseEnd) -> Operation:
    key, revision = intent.key, intent.revision
    return platform.shift(intent.service, revision=revision, etag=intent.etag, effect_key=key, lease_end=lease_end)


def _may_shift(context: StageContext, incident: Incident, platform: Platform, now: datetime) -> Intent | StageOutcome:
    """Return the stored intent of the shift; where the revision could not be measured, wait and measure it again.

    Raises:
        PolicyRefused: It must not be made.
        DependencyFailed: Somebody who must be asked did not answer; nothing follows.
    """
    decision = incident.decision
    applied = valid_change(context, incident, now)
    if not applied.staged or applied.closed:
        raise effect_refused(incident, applied.closed or "the approved plan has no staged revision")
    if decision is None or decision.id != applied.decision:
        raise effect_refused(incident, "nobody approved it")
    check_approval(context, incident, incident.require_plan(), decision)
    before = stored_intent(context, incident, EffectKind.SHIFT)
    live = platform.describe(incident.service)
    drift = drift_since(applied, live, shifted=before is not None)
    if drift:
        raise effect_refused(incident, drift)
    if before is None and not _measured_good(incident, platform.measure(incident.service, applied.revision)):
        return _measure_again(context, incident, now)
    key = key_of(incident, EffectKind.SHIFT)
    intent = applied.with_(key=key, kind=EffectKind.SHIFT, etag=live.etag)
    stored = before or context.control_store().add_intent(intent)
    if stored is None or stored.closed:
        raise effect_refused(incident, "it was refused before")
    return stored


def _measured_good(incident: Incident, measured: tuple[Measurement, ...]) -> bool:
    """Whether it is ready and answers; False where that could not be measured.

    Raises:
        PolicyRefused: It is not.
    """
    answers = {m.check: m for m in measured if m.check in {Check.READY, Check.COMPLETION}}
    bad = next((m for m in answers.values() if m.good is False), None)
    if bad is not None:
        raise effect_refused(incident, bad.says)
    return len(answers) == 2 and all(m.good for m in answers.values())


def _measure_again(context: StageContext, incident: Incident, now: datetime) -> StageOutcome:
    ordered_at = incident.require_effect(EffectKind.SHIFT).intended_at
    if now >= ordered_at + timedelta(seconds=context.rules.times.verify_s):
        return _not_shifted(context, incident, "the new revision could not be measured again", now)
    return poll_again(context, incident, now=now)


def _follow(context: StageContext, incident: Incident, operation: Operation, now: datetime) -> StageOutcome:
    effect = incident.require_effect(EffectKind.SHIFT)
    effect = effect.with_(started_at=effect.started_at or now)
    late = now >= effect.ends_by(context.rules.times.rollout_limit_s)
    if not operation.done and late:
        return _not_shifted(context, incident, f"it did not end in time: {operation.says}", now)
    if not operation.done:
        started = incident.with_effect(
            EffectKind.SHIFT, state=EffectState.STARTED, operation=operation.name, started_at=effect.started_at
        )
        return poll_again(context, incident, now=now, seen=started)
    if operation.ok is not True:
        return _not_shifted(context, incident, operation.says, now)
    shifted = incident.with_effect(
        EffectKind.SHIFT,
        state=EffectState.DONE,
        message=operation.says,
        started_at=effect.started_at,
        finished_at=now,
    )
    save(context, shifted.with_(due_at=now), "the traffic is shifted", now=now)
    return StageOutcome.NOTED


def _not_shifted(context: StageContext, incident: Incident, why: str, now: datetime) -> StageOutcome:
    close_effect(context, incident, EffectKind.SHIFT, why)
    failed = incident.with_effect(EffectKind.SHIFT, state=EffectState.FAILED, message=why, finished_at=now)
    changed = failed.with_(
        verification=incident.require_verification().with_(
            verdict=Verdict.NOT_RECOVERED, why=f"the traffic was not shifted: {why}"
        ),
        due_at=now,
    )
    save(context, changed, f"the traffic was not shifted: {shortened(why, 300)}", now=now)
    return StageOutcome.NOTED
