"""What each function does with a delivery or a tick; the same in the cloud and in the embedded service.

A cold start pays for every import, so the stages of other functions are imported where they run.
"""

import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from pydantic import Field

from agent.app import App
from agent.app.catalogues import reading_of
from agent.core.incident.incident import Incident
from agent.core.incident.step import due_step
from agent.core.intake.origin import IgnoredBecause
from agent.core.intake.read import signals_from
from agent.core.intake.signal import LIVE, Signal
from agent.core.value import Value
from agent.entrypoints.pubsub.settle import settle
from agent.errors import DependencyFailed, InputRejected, StateConflict
from agent.ports.bus import Delivery, Outcome, Topic
from agent.ports.stage_context import RECEIVER_OF, Owner, StageContext, topic_of
from agent.ports.tracing import Kind
from agent.stages.shared.commit import message_for
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.spans import stamped
from agent.stages.signal_to_incident import Opening, signal_to_incident
from agent.structured_log import structlog

OBSERVE_ATTEMPTS = 5
MOST_DUE = 1000  # what waits for something stays due, and must not keep what became due later from its turn
MOST_UNSENT = 100
TELL_ATTEMPTS = 12  # with the bus's own waits between them about an hour
QUIET = frozenset({StageOutcome.COUNTED, StageOutcome.DUPLICATE, StageOutcome.HARMLESS})  # a storm writes one line

log = structlog.get_logger(__name__)


class NotifyFailed(DependencyFailed):
    """Somebody who should see an incident did not, or its log was not seen; the message is good, and comes again later.

    Attributes:
        code: "Too many requests" in HTTP: it is tried again without being counted as a failure of the message.
    """

    code = 429


class Order(Value):
    """The body of a message between our functions."""

    kind: str = Field(pattern="^(wake|tell|order|nudge|auto|explain|observe)$")
    incident: str = Field(min_length=1, max_length=64)


def handle(app: App, delivery: Delivery) -> Outcome:
    """Do with a delivery what its topic asks for, and say what becomes of it; never raises.

    Args:
        app: Of a role that owns the topic.
        delivery: What arrived.
    """
    assert delivery.topic is not None, "what has no topic was refused when it was read"
    owner = RECEIVER_OF[delivery.topic]
    try:
        with _arrival(app, delivery, delivery.topic):
            HANDLER_OF[owner](app.contexts[owner], delivery)
    except Exception as error:  # noqa: BLE001 - a bug must cost one message at most, never the queue
        return settle(error, delivery, app.quarantine)
    return Outcome.ACK


def _arrival(app: App, delivery: Delivery, topic: Topic) -> AbstractContextManager[None]:
    """Stand around a delivery, by the semantic conventions for messaging (1.41.1)."""
    about = {
        "messaging.system": "sre_agent.queue" if app.settings.bus == "embedded" else "gcp_pubsub",
        "messaging.operation.type": "process",
        "messaging.destination.name": topic.value,
        "messaging.message.id": delivery.message_id,
        "sre_agent.delivery.attempt": delivery.attempt,
    }
    caller = delivery.attributes.get("traceparent", "")
    return app.tracer.arrival(f"process {topic}", kind=Kind.CONSUMER, caller=caller, attributes=about)


def on_event(context: StageContext, delivery: Delivery) -> tuple[StageOutcome, ...]:
    """Take a log entry or an alert in.

    Raises:
        InputRejected: The body can never become a signal.
    """
    return tuple(_take(context, signal, opening(delivery)) for signal in read_signals(context, delivery))


def read_signals(context: StageContext, delivery: Delivery) -> tuple[Signal, ...]:
    """Turn a delivery into signals.

    Raises:
        InputRejected: The body can never become one.
    """
    run = delivery.attributes.get("run", LIVE)
    taken = signals_from(delivery.data, reading_of(context.rules.services, run=run, clock=context.clock.now))
    if any(item.because is IgnoredBecause.CANARY for item in taken.ignored):
        log.info("canary.received", run=run, message=delivery.message_id)
    return taken.signals


def _take(context: StageContext, signal: Signal, opened: Opening) -> StageOutcome:
    """Run the first stage and write its one event of the log."""
    began = time.perf_counter()
    did = signal_to_incident(context, signal, opened)
    write = log.debug if did in QUIET else log.info
    write(
        "stage.finished",
        stage=signal_to_incident.__name__,
        service=signal.service,
        run=signal.run,
        signal=signal.key[:12],
        reason=did.value,
        took_s=round(time.perf_counter() - began, 3),
    )
    return did


def opening(delivery: Delivery) -> Opening:
    """How incidents of this delivery's run are opened; a replay is quiet and changes nothing unless it says so."""
    attributes = delivery.attributes
    if attributes.get("run", LIVE) == LIVE:
        return Opening()
    return Opening(
        live_replay=attributes.get("live") == "true",
        notify=attributes.get("notify") == "true",
        started_by=attributes.get("started_by"),
    )


def on_order(context: StageContext, delivery: Delivery) -> tuple[StageOutcome, ...]:
    """Run what is due of one incident, or show it to people."""
    from agent.stages.advance import advance
    from agent.stages.plan_to_decision import auto_approve
    from agent.stages.tell import tell_people

    order = _order(delivery)
    if order.kind == "tell":
        failed = tell_people(context, order.incident)
        if failed and delivery.attempt < TELL_ATTEMPTS:
            raise NotifyFailed(
                f"people were not notified of {order.incident!r}",
                why="; ".join(f"{name}: {error}" for name, error in failed.items())[:500],
                hint="no action needed: it is tried again, and the incident goes on",
            )
        return (StageOutcome.NOTED,)
    if order.kind == "observe":
        return (_observed(context, delivery, order.incident),)
    if order.kind == "auto":
        auto_approve(context, order.incident)
    return advance(context, order.incident, may_explain=order.kind in {"explain", "nudge"})


def _observed(context: StageContext, delivery: Delivery, incident_id: str) -> StageOutcome:
    """A log that cannot be read is given up in the end: the verdict never waits for it."""
    from agent.stages.observe import observe

    try:
        return observe(context, incident_id)
    except (DependencyFailed, StateConflict) as error:
        if delivery.attempt < OBSERVE_ATTEMPTS:
            raise NotifyFailed(error.what, why=error.why, hint=error.hint) from error
        return StageOutcome.WAITING


def on_tick(context: StageContext, *, polled: Collection[str] = ()) -> dict[str, tuple[StageOutcome, ...]]:
    """Run what time has made due, wake the owners of the rest, and send what was left unsent.

    One incident that fails does not hold up the others; its error is raised at the end.

    Args:
        context: The ports.
        polled: Incidents that were polled less than ``POLL_S`` ago; they are left out, though they are due.
    """
    from agent.stages.advance import advance

    now = context.clock.now()
    did: dict[str, tuple[StageOutcome, ...]] = {}
    failed: Exception | None = None
    due = [one for one in context.store.due(now, MOST_DUE) if one not in polled]
    unsent = context.store.unsent(MOST_UNSENT)
    more = len(unsent) == MOST_UNSENT
    for incident_id in dict.fromkeys((*due, *unsent)):
        try:
            with context.tracer.arrival("tick", kind=Kind.INTERNAL, attributes={}):
                done = advance(context, incident_id, unsent=more or incident_id in unsent)
            if StageOutcome.NOT_OURS in done:
                nudge(context, context.store.load(incident_id))
        except Exception as error:  # noqa: BLE001 - a bug of ours in one of them must not hold up the others either
            failed = failed or error
            done = ()
        did[incident_id] = done
    if failed is not None:
        raise failed
    return did


def nudge(context: StageContext, incident: Incident) -> None:
    """Wake the function that owns the next step; a message may have been lost long ago."""
    now = context.clock.now()
    step = due_step(incident, now)
    topic = topic_of(step)
    if topic is not None:
        message = stamped(context, incident, message_for(incident, topic, "nudge"))
        context.bus.publish(message.with_(id=f"{message.id}.{int(now.timestamp()) // 10}"))


def _order(delivery: Delivery) -> Order:
    try:
        return Order.model_validate_json(delivery.data)
    except ValueError as error:
        raise InputRejected(
            f"message {delivery.message_id!r} was not read",
            why="it is not an order of this agent",
            hint="check who may publish to this topic",
        ) from error


HANDLER_OF: dict[Owner, Callable[[StageContext, Delivery], object]] = {
    Owner.INTAKE: on_event,
    Owner.INCIDENT: on_order,
    Owner.DECISION: on_order,
}
