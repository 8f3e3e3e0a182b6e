"""The prior template and traffic are put back where our change stands and nothing else was changed since."""

from datetime import datetime, timedelta

from agent.core.change.drift import drift_since
from agent.core.change.execution import Effect, EffectKind, Intent, revision_name
from agent.core.change.verification import Verdict
from agent.core.incident.incident import Incident
from agent.core.plan.action import LifecycleOperation
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.service.serving import Live
from agent.errors import SreError
from agent.ports.control import LeaseEnd
from agent.ports.platform import Operation, Platform, Restore
from agent.ports.stage_context import StageContext
from agent.ports.store import head_key
from agent.stages.shared.commit import save
from agent.stages.shared.effects import (
    REFUSALS,
    close_effect,
    effect_refused,
    find_effect,
    key_of,
    note_started,
    perform,
    stored_intent,
    valid_change,
)
from agent.stages.shared.kill_switch import changes_stopped
from agent.stages.shared.outcome import StageOutcome
from agent.stages.watch_undo import await_credentials, give_up, rolled_back


def undo(context: StageContext, incident: Incident) -> StageOutcome:
    """Put the prior template and traffic back; covered by the approval of the change itself.

    It rests on nothing but what the control database holds of the change, which must bear our stamp and be the last
    one. Exempt from windows and limits; valid for 24 hours after the change. The kill switch stops it too. Where it
    is not made, a person is told. Where the platform does not accept our credentials, it is tried again for as long as
    a rollout may take.
    """
    now = context.now_for(incident)
    platform = context.platform_of(incident.service)
    if incident.effect(EffectKind.APPLY) is None or platform is None:
        return rolled_back(context, incident, "nothing was changed by us", now)
    try:
        made = find_effect(context, platform, incident, EffectKind.APPLY)
        removing = stored_intent(context, incident, EffectKind.ROLL_BACK) is not None
        if made is not None and lifecycle_of(incident.require_plan().actions) is LifecycleOperation.DELETE:
            raise effect_refused(incident, "a deletion cannot be undone")
        if made is None and not removing:
            return _without_trace(context, incident, platform, now)
        intent = stored_intent(context, incident, EffectKind.ROLL_BACK) or _intend(context, incident, platform, now)
        if intent.closed:
            raise effect_refused(incident, f"it was refused before: {intent.closed}")
    except REFUSALS as error:  # gone, closed to us, changed by somebody else, or too late
        return _not_undone(context, incident, error, now)
    effect = incident.effect(EffectKind.ROLL_BACK)
    if effect is None or (effect.key, effect.etag) != (intent.key, intent.etag):
        return _show(context, incident, intent, now)
    return _perform(context, incident, intent, now)


def _without_trace(context: StageContext, incident: Incident, platform: Platform, now: datetime) -> StageOutcome:
    """Nothing bears the stamp of our change: it was never made, or somebody replaced what bore it.

    Raises:
        PolicyRefused: It was made; a person looks at what stands there now.
    """
    if incident.require_effect(EffectKind.APPLY).operation is not None:
        _still_ours(context, incident, platform, now)
        raise effect_refused(incident, "nothing bears the stamp of our change any more, so somebody replaced it")
    close_effect(context, incident, EffectKind.APPLY, "it was rolled back before it was made")
    return rolled_back(context, incident, "the change was never made", now)


def _perform(context: StageContext, incident: Incident, intent: Intent, now: datetime) -> StageOutcome:
    def check(platform: Platform) -> Intent | StageOutcome:
        begun = platform.find(incident.service, intent.key)
        if begun is not None and begun.remains:
            try:
                valid_change(context, incident, now)
            except REFUSALS as error:  # told as it is: an operation that is found would be called again
                return _not_undone(context, incident, error, now)
            return intent  # half done by us; the platform looks whether anything was changed since
        _still_ours(context, incident, platform, now)
        return intent

    what = "the prior template is being put back"
    return perform(
        context,
        incident,
        EffectKind.ROLL_BACK,
        check=check,
        call=_restore,
        on_started=lambda found: note_started(
            context, incident.with_(stuck=""), EffectKind.ROLL_BACK, found, what, now=now
        ),
        on_refused=lambda error: _not_undone(context, incident, error, now),
    )


def _intend(context: StageContext, incident: Incident, platform: Platform, now: datetime) -> Intent:
    """Store the intent of the roll-back, with the etag of now."""
    stopped = changes_stopped(context)
    if stopped:
        raise effect_refused(incident, stopped)
    applied, live = _still_ours(context, incident, platform, now)
    ordered_by = _ordered_by(context, incident, applied)
    key = key_of(incident, EffectKind.ROLL_BACK)
    revision = revision_name(incident.service, key)
    undoing = applied.with_(
        key=key, kind=EffectKind.ROLL_BACK, etag=live.etag, revision=revision, decision=ordered_by, closed=""
    )
    stored = context.control_store().add_intent(undoing)
    if stored is None:
        raise effect_refused(incident, "it was refused before")
    return stored


def _ordered_by(context: StageContext, incident: Incident, applied: Intent) -> str:
    """Return which decision covers the roll-back: that of a person, else the approval of what failed its verification.

    Raises:
        PolicyRefused: Nothing failed, and no signed decision of a person covers this very change.
        DependencyFailed: The holder of the key did not answer; nothing may follow.
    """
    verdict = incident.verification.verdict if incident.verification is not None else None
    if incident.roll_back is None:
        if verdict in {Verdict.NOT_RECOVERED, Verdict.INCONCLUSIVE}:
            return applied.decision
        raise effect_refused(incident, "no verification failed, and nobody decided to roll it back")
    why = incident.roll_back.refusal(
        context.receipts(), incident=incident.id, plan_digest=applied.plan_digest, effect=applied.key
    )
    if why:
        raise effect_refused(incident, why)
    return incident.roll_back.id


def _still_ours(context: StageContext, incident: Incident, platform: Platform, now: datetime) -> tuple[Intent, Live]:
    """Return our change and the service as it is, where nothing but our change stands between it and the prior state.

    Raises:
        PolicyRefused: Somebody changed it since, or the change is too old.
    """
    applied = valid_change(context, incident, now)
    live = platform.describe(incident.service)
    shifted = applied.staged and stored_intent(context, incident, EffectKind.SHIFT) is not None
    drift = drift_since(applied, live, shifted=shifted)
    if drift:
        by = f" (last changed by {live.changed_by!r})" if live.changed_by else ""
        raise effect_refused(incident, drift + by)
    return applied, live


def _show(context: StageContext, incident: Incident, intent: Intent, now: datetime) -> StageOutcome:
    """Show the stored intent in the incident, where people and the watch of the roll-back find it."""
    execution = incident.require_execution()
    effect = Effect(key=intent.key, kind=intent.kind, etag=intent.etag, revision=intent.revision, intended_at=now)
    others = tuple(e for e in execution.effects if e.kind is not EffectKind.ROLL_BACK)
    shown = execution.with_(
        effects=(*others, effect), prior_template=intent.prior_template, prior_traffic=intent.prior_traffic
    )
    heads = (head_key(incident.run, incident.service, effect.revision),)
    what = f"intends to put the prior template back as {effect.revision}"
    save(context, incident.with_(execution=shown, due_at=now, stuck=""), what, now=now, heads=heads)
    return StageOutcome.NOTED


def _restore(platform: Platform, intent: Intent, lease_end: LeaseEnd) -> Operation:
    return platform.restore(
        Restore(
            service=intent.service,
            incident=intent.incident,
            effect_key=intent.key,
            revision=intent.revision,
            etag=intent.etag,
            template=intent.prior_template,
            traffic=intent.prior_traffic,
            actions=intent.actions,
            lease_end=lease_end,
        )
    )


def _not_undone(context: StageContext, incident: Incident, error: SreError, now: datetime) -> StageOutcome:
    until = incident.phase_at + timedelta(seconds=context.rules.times.rollout_limit_s)
    waiting = await_credentials(context, incident, error, now, until=until)
    if waiting is not None:
        return waiting
    close_effect(context, incident, EffectKind.ROLL_BACK, str(error))
    return give_up(context, incident, f"the roll-back was not made: {error}", now)
