"""What is asked right before any effect: the kill switch, the limits and the stored intent; no answer means no."""

import time
from datetime import datetime, timedelta
from typing import Final

from agent.core.change.execution import Effect, EffectKind, Intent, effect_key, revision_name
from agent.core.incident.incident import Incident
from agent.errors import DependencyFailed, SreError
from agent.ports.control import KillSwitch, RateLimit
from agent.ports.stage_context import StageContext
from agent.stages.shared.database_pair import databases_apart

ANSWER_S: Final = 1.0  # a switch that takes longer to read may have been turned since


def switched_on(context: StageContext) -> str:
    """Return why the kill switch lets no change begin, or nothing where it is clearly off.

    Raises:
        DependencyFailed: Nobody knows how it stands: no answer, a late one, or one that means nothing. No effect may
            start, and nothing else follows from it either: the step is tried again.
    """
    if context.halted:
        return "the kill switch is on (KILL_SWITCH in the environment)"
    began = time.monotonic()
    switch = _read_switch(context)
    if switch.on is True:
        return f"the kill switch is on (by {switch.by or 'somebody'}: {switch.why or 'no reason given'})"
    if time.monotonic() - began > ANSWER_S:
        raise _unread(f"it did not answer within {ANSWER_S:g} s")
    return ""


def _read_switch(context: StageContext) -> KillSwitch:
    try:
        switch = context.control_store().kill_switch()
    except SreError as error:
        raise _unread(error.why) from error
    except Exception as error:  # whatever a store answers but "off" stops us
        raise _unread(type(error).__name__) from error
    if not isinstance(switch, KillSwitch) or switch.on not in (True, False):
        raise _unread("the control database answered something else")
    return switch


def _unread(why: str) -> DependencyFailed:
    return DependencyFailed(
        "the kill switch could not be read", why=why, mend="it is tried again; until then no change"
    )


def changes_stopped(context: StageContext) -> str:
    """Return why nothing may be changed now, or nothing: databases that do not belong together, or the kill switch.

    Raises:
        DependencyFailed: Nobody knows; no effect may start, and the step is tried again.
    """
    return databases_apart(context) or switched_on(context)


def kill_switch_says(context: StageContext) -> str:
    """Return for people why no effect may start, or nothing; a switch that cannot be read says so."""
    try:
        return changes_stopped(context)
    except DependencyFailed as error:
        return f"{error.what}: {error.why}"


def rate_limit(context: StageContext) -> RateLimit:
    """Return how many changes the policy allows."""
    policy = context.rules.policy
    return RateLimit(window_s=policy.change_window_s, per_hour=policy.changes_per_hour)


def key_of(incident: Incident, kind: EffectKind) -> str:
    """Return the key of an effect of the incident's present plan."""
    assert incident.plan is not None
    return effect_key(incident.id, incident.plan.digest, kind)


def stored_intent(context: StageContext, incident: Incident, kind: EffectKind) -> Intent | None:
    """Return what the control database holds of an effect, or None: then nobody may make it.

    The key is taken over the incident's id and the whole plan, so a plan that was changed after its approval finds
    nothing. An intent from before targets were kept is completed from the plan that its key covers.

    Raises:
        DependencyFailed: The control database did not answer; nothing may follow.
    """
    plan = incident.plan
    assert plan is not None
    intent = context.control_store().intent(key_of(incident, kind))
    if intent is None or intent.kind is not kind or intent.service != incident.service:
        return None
    if intent.target is not None:
        return intent
    before = incident.execution.revision_before if incident.execution is not None else None
    return intent.with_(
        incident=incident.id,
        plan_digest=plan.digest,
        actions=plan.actions,
        staged=plan.staged,
        target=plan.target,
        revision=revision_name(incident.service, intent.key),
        prior_revision=before,
    )


def close_effect(context: StageContext, incident: Incident, kind: EffectKind, why: str) -> None:
    """Close an effect of the present plan for good; before the incident moves, so that nobody can take it up again.

    Raises:
        DependencyFailed: It may still be open; the incident must not move.
    """
    context.control_store().close_intent(key_of(incident, kind), why[:500])


def next_slot_at(context: StageContext, service: str, now: datetime) -> datetime | None:
    """Return when a change of this service may start, or None for at once.

    Raises:
        DependencyFailed: The limits could not be read; nothing may start.
    """
    policy = context.rules.policy
    hour = timedelta(hours=1)
    window = timedelta(seconds=policy.change_window_s)
    limits = context.control_store().limits(service, now - max(hour, window))
    waits = [at + window for at in limits.service_changes if at + window > now]
    lately = sorted(at for at in limits.all_changes if at + hour > now)
    if policy.changes_per_hour <= 0:
        return now + hour
    if len(lately) >= policy.changes_per_hour:
        waits.append(lately[-policy.changes_per_hour] + hour)
    return max(waits, default=None)


def put_on_record(context: StageContext, incident: Incident, effect: Effect, now: datetime) -> None:
    """Write that an effect was started, before it is saved; a rival or a retry that found it started writes no more."""
    context.control_store().append(
        at=now,
        kind=f"effect.{effect.kind}",
        incident=incident.id,
        who="on_decision",
        body=f"{effect.key} {effect.revision}",
        once=True,
    )
