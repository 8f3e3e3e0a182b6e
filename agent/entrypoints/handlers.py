"""What each function does with a delivery; the same in the cloud and in the embedded service."""

import time
from collections.abc import Callable

import structlog
from pydantic import Field

from agent.core.incident import Incident
from agent.core.signal import LIVE, Signal
from agent.core.step import due_step
from agent.core.value import Value
from agent.errors import DependencyFailed, InputRejected
from agent.ports.bus import Delivery
from agent.ports.world import TOPIC_OF, World
from agent.stages.advance import STAGE_OF, advance
from agent.stages.by_policy import decide_by_policy
from agent.stages.commit import drain, message_for
from agent.stages.reason import Did
from agent.stages.signal_to_incident import Opening, signal_to_incident
from agent.stages.tell import tell_people

log = structlog.get_logger(__name__)

QUIET = frozenset({Did.COUNTED, Did.DUPLICATE, Did.HARMLESS})  # a storm writes one line, not a million

Read = Callable[[Delivery], tuple[Signal, ...]]


class Order(Value):
    """The body of a message between our functions."""

    kind: str = Field(pattern="^(wake|tell|order|nudge|auto|explain)$")
    incident: str = Field(min_length=1, max_length=64)


def on_event(world: World, delivery: Delivery, read: Read) -> tuple[Did, ...]:
    """Take a log entry or an alert in.

    Args:
        world: The ports of the intake function.
        delivery: What arrived.
        read: Turns a delivery into signals.

    Raises:
        InputRejected: The body can never become a signal.
    """
    return tuple(_take(world, signal, opening(delivery)) for signal in read(delivery))


def _take(world: World, signal: Signal, opened: Opening) -> Did:
    """Run the first stage and write its one event of the log."""
    began = time.perf_counter()
    did = signal_to_incident(world, signal, opened)
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


def on_order(world: World, delivery: Delivery) -> tuple[Did, ...]:
    """Run what is due of one incident, or show it to people."""
    order = _order(delivery)
    if order.kind == "tell":
        drain(world, order.incident)
        failed = tell_people(world, order.incident)
        if failed and delivery.attempt < 3:
            raise DependencyFailed(
                f"people were not told of {order.incident!r}",
                why="; ".join(failed)[:500],
                mend="nothing to do: it is tried again, and the incident goes on",
            )
        return (Did.NOTED,)
    if order.kind == "auto":
        decide_by_policy(world, order.incident)
    return advance(world, order.incident, may_explain=order.kind in {"explain", "nudge"})


def on_tick(world: World) -> dict[str, tuple[Did, ...]]:
    """Run what time has made due, wake the owners of the rest, and send what was left unsent.

    One incident that fails does not hold up the others; its error is raised at the end.
    """
    now = world.clock.now()
    did: dict[str, tuple[Did, ...]] = {}
    failed: DependencyFailed | None = None
    for incident_id in dict.fromkeys((*world.store.due(now), *world.store.unsent())):
        try:
            done = advance(world, incident_id)
            if Did.NOT_OURS in done:
                nudge(world, world.store.load(incident_id))
        except DependencyFailed as error:
            failed = error
            done = ()
        did[incident_id] = done
    if failed is not None:
        raise failed
    return did


def nudge(world: World, incident: Incident) -> None:
    """Wake the function that owns the next step; a message may have been lost long ago."""
    now = world.clock.now()
    step = due_step(incident, now)
    topic = TOPIC_OF.get(STAGE_OF[step][0]) if step is not None else None
    if topic is not None:
        message = message_for(incident, topic, "nudge")
        world.bus.publish(message.with_(id=f"{message.id}.{int(now.timestamp()) // 10}"))


def _order(delivery: Delivery) -> Order:
    try:
        return Order.model_validate_json(delivery.data)
    except ValueError as error:
        raise InputRejected(
            f"message {delivery.message_id!r} was not read",
            why="it is no order between our functions",
            mend="look at who may publish to this topic",
        ) from error
