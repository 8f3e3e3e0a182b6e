"""What the intake functions do with a delivery; apart from the rest, because a cold start pays for every import."""

import time
from collections.abc import Callable

import structlog

from agent.core.intake.signal import LIVE, Signal
from agent.ports.bus import Delivery
from agent.ports.stage_context import StageContext
from agent.stages.shared.outcome import StageOutcome
from agent.stages.signal_to_incident import Opening, signal_to_incident

log = structlog.get_logger(__name__)

QUIET = frozenset(
    {StageOutcome.COUNTED, StageOutcome.DUPLICATE, StageOutcome.HARMLESS}
)  # a storm writes one line, not a million

Read = Callable[[Delivery], tuple[Signal, ...]]


def on_event(world: StageContext, delivery: Delivery, read: Read) -> tuple[StageOutcome, ...]:
    """Take a log entry or an alert in.

    Args:
        world: The ports of the intake function.
        delivery: What arrived.
        read: Turns a delivery into signals.

    Raises:
        InputRejected: The body can never become a signal.
    """
    return tuple(_take(world, signal, opening(delivery)) for signal in read(delivery))


def _take(world: StageContext, signal: Signal, opened: Opening) -> StageOutcome:
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
