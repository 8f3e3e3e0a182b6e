"""What each function does with a delivery; the same in the cloud and in the embedded service."""

from pydantic import Field

from agent.core.incident.incident import Incident
from agent.core.incident.step import due_step
from agent.core.value import Value
from agent.errors import DependencyFailed, InputRejected, StateConflict
from agent.ports.bus import Delivery
from agent.ports.stage_context import StageContext, topic_of
from agent.stages.advance import advance
from agent.stages.observe import observe
from agent.stages.plan_to_decision import auto_approve
from agent.stages.shared.commit import drain, message_for
from agent.stages.shared.outcome import StageOutcome
from agent.stages.tell import tell_people

OBSERVE_ATTEMPTS = 5
TELL_ATTEMPTS = 12  # with the bus's own waits between them about an hour


class NotTold(DependencyFailed):
    """Somebody who should see an incident did not, or its log was not seen; the message is good, and comes again later.

    Attributes:
        code: "Too many requests" in HTTP: it is tried again without being counted as a failure of the message.
    """

    code = 429


class Order(Value):
    """The body of a message between our functions."""

    kind: str = Field(pattern="^(wake|tell|order|nudge|auto|explain|observe)$")
    incident: str = Field(min_length=1, max_length=64)


def on_order(world: StageContext, delivery: Delivery) -> tuple[StageOutcome, ...]:
    """Run what is due of one incident, or show it to people."""
    order = _order(delivery)
    if order.kind == "tell":
        drain(world, order.incident)
        failed = tell_people(world, order.incident)
        if failed and delivery.attempt < TELL_ATTEMPTS:
            raise NotTold(
                f"people were not told of {order.incident!r}",
                why="; ".join(f"{name}: {error}" for name, error in failed.items())[:500],
                mend="nothing to do: it is tried again, and the incident goes on",
            )
        return (StageOutcome.NOTED,)
    if order.kind == "observe":
        drain(world, order.incident)
        return (_observed(world, delivery, order.incident),)
    if order.kind == "auto":
        auto_approve(world, order.incident)
    return advance(world, order.incident, may_explain=order.kind in {"explain", "nudge"})


def _observed(world: StageContext, delivery: Delivery, incident_id: str) -> StageOutcome:
    """A log that cannot be read is given up in the end: the verdict never waits for it."""
    try:
        return observe(world, incident_id)
    except (DependencyFailed, StateConflict) as error:
        if delivery.attempt < OBSERVE_ATTEMPTS:
            raise NotTold(error.what, why=error.why, mend=error.mend) from error
        return StageOutcome.WAITING


def on_tick(world: StageContext) -> dict[str, tuple[StageOutcome, ...]]:
    """Run what time has made due, wake the owners of the rest, and send what was left unsent.

    One incident that fails does not hold up the others; its error is raised at the end.
    """
    now = world.clock.now()
    did: dict[str, tuple[StageOutcome, ...]] = {}
    failed: Exception | None = None
    for incident_id in dict.fromkeys((*world.store.due(now), *world.store.unsent())):
        try:
            done = advance(world, incident_id)
            if StageOutcome.NOT_OURS in done:
                nudge(world, world.store.load(incident_id))
        except Exception as error:  # noqa: BLE001 - a bug of ours in one of them must not hold up the others either
            failed = failed or error
            done = ()
        did[incident_id] = done
    if failed is not None:
        raise failed
    return did


def nudge(world: StageContext, incident: Incident) -> None:
    """Wake the function that owns the next step; a message may have been lost long ago."""
    now = world.clock.now()
    step = due_step(incident, now)
    topic = topic_of(step)
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
