"""What is asked right before any effect: the kill switch and the limits; no answer means no."""

import time
from datetime import datetime, timedelta
from typing import Final

from agent.core.execution import Effect, EffectKind, Execution, effect_key, revision_name
from agent.core.incident import Incident
from agent.core.value import digest
from agent.errors import PolicyRefused, SreError
from agent.ports.control import KillSwitch, Room
from agent.ports.world import World
from agent.stages.approval import check_approval, check_covered, refused

ANSWER_S: Final = 1.0  # a switch that takes longer to read may have been turned since


def switched_on(world: World) -> str:
    """Return why the kill switch lets no change begin, or nothing.

    Raises:
        DependencyFailed: Nobody knows how it stands.
    """
    if world.halted:
        return "the kill switch is on (KILL_SWITCH in the environment)"
    switch = world.control_store().kill_switch()
    if not isinstance(switch, KillSwitch) or switch.on is not False:
        by, why = getattr(switch, "by", ""), getattr(switch, "why", "")
        return f"the kill switch is on (by {by or 'somebody'}: {why or 'no reason given'})"
    return ""


def kill_switch_says(world: World) -> str:
    """Return why no effect may start, or nothing; a switch that is not read at once, and clearly off, counts as on."""
    began = time.monotonic()
    try:
        stopped = switched_on(world)
    except SreError as error:
        return f"the kill switch could not be read: {error.why}"
    except Exception as error:  # noqa: BLE001 - whatever a store answers but "off" stops us
        return f"the kill switch could not be read: {type(error).__name__}"
    if stopped:
        return stopped
    return "" if time.monotonic() - began <= ANSWER_S else f"the kill switch did not answer within {ANSWER_S:g} s"


def room(world: World) -> Room:
    """Return how many changes the policy allows."""
    policy = world.knowledge.policy
    return Room(window_s=policy.change_window_s, per_hour=policy.changes_per_hour)


def check_effect(world: World, incident: Incident, effect: Effect) -> None:
    """Refuse an effect that the approval in the incident does not cover.

    Key and revision of an effect follow from the approved plan, so that nobody who can write an incident can name
    others.

    Raises:
        PolicyRefused: The approval does not cover it.
        DependencyFailed: The holder of the key did not answer; nothing may follow.
    """
    plan, decision = incident.plan, incident.decision
    assert plan is not None
    if decision is None:
        raise refused(plan, "nobody approved it", f"sre-agent approve {plan.id}")
    check_approval(world, incident, plan, decision)
    _check_names(incident, effect)


def _check_names(incident: Incident, effect: Effect) -> None:
    plan = incident.plan
    assert plan is not None
    key = effect_key(incident.id, plan.digest, effect.kind)
    made = EffectKind.APPLY if effect.kind is EffectKind.SHIFT else effect.kind
    revision = revision_name(incident.service, effect_key(incident.id, plan.digest, made))
    if effect.key != key or effect.revision != revision:
        raise refused(plan, "the effect is not the one that was approved", "look at who writes to the store")


def check_way_back(world: World, incident: Incident, execution: Execution, effect: Effect) -> None:
    """Refuse a roll-back to anything but what stood before the approved change; no expiry, no limits.

    Raises:
        PolicyRefused: Template or traffic are not those that were kept before the change.
        DependencyFailed: The control store or the holder of the key did not answer.
    """
    plan, decision = incident.plan, incident.decision
    assert plan is not None
    if decision is None:
        raise refused(plan, "nobody approved the change", "put it back by hand")
    check_covered(world, incident, plan, decision)
    _check_names(incident, effect)
    applied = effect_key(incident.id, plan.digest, EffectKind.APPLY)
    kept = world.control_store().prior(applied)
    if kept != (execution.prior_template, execution.prior_traffic):
        raise refused(plan, "what would be put back is not what was kept before the change", "put it back by hand")
    if digest(execution.prior_template) != decision.prior_template:
        raise refused(plan, "what would be put back is not what the approval names", "put it back by hand")


def why_not(world: World, incident: Incident, effect: Effect) -> str:
    """Return why an effect is not covered by its approval, or nothing."""
    try:
        check_effect(world, incident, effect)
    except PolicyRefused as refusal:
        return str(refusal)
    return ""


def room_at(world: World, service: str, now: datetime) -> datetime | None:
    """Return when a change of this service may start, or None for at once.

    Raises:
        DependencyFailed: The limits could not be read; nothing may start.
    """
    policy = world.knowledge.policy
    hour = timedelta(hours=1)
    window = timedelta(seconds=policy.change_window_s)
    limits = world.control_store().limits(service, now - max(hour, window))
    waits = [at + window for at in limits.service_changes if at + window > now]
    lately = sorted(at for at in limits.all_changes if at + hour > now)
    if policy.changes_per_hour <= 0:
        return now + hour
    if len(lately) >= policy.changes_per_hour:
        waits.append(lately[-policy.changes_per_hour] + hour)
    return max(waits, default=None)


def put_on_record(world: World, incident: Incident, effect: Effect, now: datetime) -> None:
    """Write that an effect was started, before it is saved; a rival or a retry that found it started writes no more."""
    world.control_store().append(
        at=now,
        kind=f"effect.{effect.kind}",
        incident=incident.id,
        who="on_decision",
        body=f"{effect.key} {effect.revision}",
        once=True,
    )
