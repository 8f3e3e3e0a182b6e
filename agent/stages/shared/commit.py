"""Saving what a stage decided: state, timeline and the messages that wake the next function, in one transaction."""

from datetime import datetime, timedelta
from typing import Any

from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import EventKind
from agent.core.incident.renotify import with_renotification
from agent.core.incident.step import Step, due_step
from agent.core.intake.signal import LIVE, Signal
from agent.core.plan.plan import Plan
from agent.core.text.safe_text import shortened
from agent.core.value import canonical
from agent.ports.bus import Message, Topic
from agent.ports.stage_context import OWNER_OF, Owner, StageContext, topic_of
from agent.ports.store import Change
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.spans import stamped
from agent.structured_log import structlog

log = structlog.get_logger(__name__)


def save(
    context: StageContext,
    incident: Incident,
    what: str,
    *,
    now: datetime,
    by: str = "agent",
    tell: bool = True,
    wake: bool = True,
    heads: tuple[str, ...] = (),
    seen: dict[str, str | None] | None = None,
    signals: tuple[Signal, ...] = (),
    plan: Plan | None = None,
    also: tuple[Message, ...] = (),
    kind: EventKind | None = None,
) -> Incident:
    """Commit a new state with its line of the timeline and its messages, then send them.

    Args:
        context: The ports.
        incident: The new state, with the version that was read.
        what: The line of the timeline; empty writes none.
        now: The time of this run.
        by: Who did it.
        tell: Whether people should see the new state.
        wake: Whether the function that owns the next step is woken, where that is another one.
        heads: Head keys that point at this incident from now on.
        seen: What head keys pointed at when this was decided.
        signals: Signals stored with it.
        plan: A new plan.
        also: Further messages.
        kind: What happened, where the phase does not say it.

    Returns:
        The committed incident.

    Raises:
        StateConflict: Somebody else wrote first; nothing was written.
    """
    known = incident.traceparent
    if not known and (begun := context.tracer.traceparent()):
        incident = incident.with_(traceparent=begun)
    incident = with_renotification(incident, context.rules.times, now)
    sent = (*_messages(incident, now, owner=context.owner, tell=tell, wake=wake), *also)
    messages = tuple(stamped(context, incident, message) for message in sent)
    change = Change(
        incident=incident,
        heads=heads,
        seen=seen or {},
        signals=signals,
        messages=messages,
        events=(_line(incident, what, now=now, by=by, kind=kind),) if what else (),
        plan=plan,
    )
    committed = context.store.commit(change)
    if sent or incident.traceparent != known:
        context.tracer.keep()
    if what and incident.phase_at == now:
        _moved(committed, now)
    _publish(context, messages)  # read back they would cost a read; what an earlier run left is sent by send_outbox
    return committed


def poll_again(
    context: StageContext,
    incident: Incident,
    *,
    now: datetime,
    seen: Incident | None = None,
    in_s: float = 0,
    also: tuple[Message, ...] = (),
) -> StageOutcome:
    """Wait until the next poll; nobody is told or woken for it. Where nothing is new, nothing is written either.

    Args:
        context: The ports.
        incident: As it was loaded; unwritten it stays due, and the next tick looks again.
        now: The time of this run.
        seen: What the poll made of it; None where it found nothing new.
        in_s: How long the next poll can wait, where that is longer than until the next tick.
        also: Messages that go out with it.
    """
    times = context.rules.times
    if (seen is None or seen == incident) and in_s <= times.poll_s and not also:
        return StageOutcome.WAITING
    due = now + timedelta(seconds=max(times.poll_s, in_s))
    save(context, (seen or incident).with_(due_at=due), "", now=now, tell=False, wake=False, also=also)
    return StageOutcome.WAITING


def wait_and_notify_once(
    context: StageContext, incident: Incident, head: str, cause: str, *, now: datetime, hint: str = ""
) -> StageOutcome:
    """Wait for what the agent cannot bring about itself; people are told it once, and then nothing is written.

    Args:
        context: The ports.
        incident: As it was loaded; what else is to be kept is written with the first word.
        head: What is waited for, how long, up to the cause; another head is told anew, whatever was told before.
        cause: As the other side says it; its words may differ from one try to the next.
        now: The time of this run.
        hint: What the reader can do.
    """
    if not incident.stuck.startswith(head):
        why = f"{head}{cause}"
        stuck = f"{why} ({shortened(hint, 200)})" if hint else why
        due = now + timedelta(seconds=context.rules.times.poll_s)
        waits = incident.with_(stuck=stuck, due_at=due)
        save(context, waits, f"cannot go on: {why}", now=now, wake=False, kind=EventKind.STUCK)
    return StageOutcome.WAITING


def _line(incident: Incident, what: str, *, now: datetime, by: str, kind: EventKind | None) -> Event:
    plan = incident.plan
    return Event(
        at=now,
        phase=incident.phase,
        what=what,
        by=by,
        cause=incident.cause,
        plan=plan.id if plan is not None else None,
        plan_digest=plan.digest if plan is not None else None,
        by_person=plan.by_person if plan is not None else None,
        kind=kind,
    )


def _moved(incident: Incident, now: datetime) -> None:
    """Write the event from which incidents, first words, decisions, recoveries and roll-backs are counted.

    A change that was asked for is counted apart: it is no trouble.
    """
    log.info(
        "incident.moved" if incident.request is None else "request.moved",
        incident=incident.id,
        service=incident.service,
        run=incident.run,
        phase=incident.phase.value,
        cause=incident.cause,
        since_open_s=_since(incident.opened_at, now),
        since_plan_s=_since(incident.plan.made_at, now) if incident.plan else None,
    )


def _since(then: datetime, now: datetime) -> float:
    return round((now - then).total_seconds(), 3)


def send_outbox(context: StageContext, incident_id: str) -> None:
    """Send what was committed and not yet sent, by whoever goes on with the incident; the tick sends what is left."""
    _publish(context, context.store.outbox(incident_id))


def _publish(context: StageContext, messages: tuple[Message, ...]) -> None:
    for message in messages:
        context.bus.publish(message)
        context.store.sent((message.id,))


def _messages(incident: Incident, now: datetime, *, owner: Owner, tell: bool, wake: bool) -> tuple[Message, ...]:
    """Return what is sent about a state; who owns the next step goes on with it (advance) and is not woken again."""
    step = due_step(incident, now) if wake else None
    topic = topic_of(step)
    messages = []
    if topic is not None and step is not None and step is not Step.EXPLAIN and OWNER_OF[step] is not owner:
        messages.append(message_for(incident, topic, "order" if topic is Topic.DECISIONS else "wake"))
    if tell and (incident.notify or incident.run == LIVE):
        messages.append(message_for(incident, Topic.INCIDENTS, "tell"))
    if step is Step.EXPLAIN:  # after people: a question to the model may hold its delivery up for a minute
        messages.append(message_for(incident, Topic.INCIDENTS, "explain"))
    return tuple(messages)


def message_for(incident: Incident, topic: Topic, kind: str, **more: Any) -> Message:
    """Return a message about an incident, named by the version that it follows."""
    return Message(
        id=f"{incident.id}.{incident.version + 1}.{kind}",
        topic=topic,
        data=canonical({"kind": kind, "incident": incident.id, **more}).decode(),
        attributes={"run": incident.run, "kind": kind, "incident": incident.id},
    )
