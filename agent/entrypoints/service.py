"""The embedded service: the same handlers as the functions, driven by the queue and a tick in one process."""

import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import structlog

from agent.app import App
from agent.core.incident.phase import Phase
from agent.core.intake.origin import IgnoredBecause
from agent.core.intake.read import signals_from
from agent.core.intake.signal import LIVE, Signal
from agent.core.value import canonical, digest
from agent.entrypoints.outcome import Handle, receive
from agent.errors import SreError
from agent.ports.bus import Delivery, Message, Outcome, Topic
from agent.ports.stage_context import RECEIVER_OF, Owner
from agent.ports.store import Query

ACTED_FOR = 200  # open incidents of a rehearsal, at most, whose tasks are acted out
log = structlog.get_logger(__name__)


def handlers(app: App) -> dict[str, Callable[[Delivery], Outcome]]:
    """Return who handles each subscription's deliveries."""
    return {f"{topic}-sub": _receiver(app, topic) for topic in RECEIVER_OF}


def handler(app: App, topic: Topic) -> Handle:
    """Return what is done with a topic's deliveries: in this process, or in the function that is bound to it."""
    world = app.contexts[RECEIVER_OF[topic]]

    if RECEIVER_OF[topic] is Owner.INTAKE:
        from agent.entrypoints.taking import on_event

        return lambda delivery: on_event(world, delivery, lambda d: read_signals(app, d))
    from agent.entrypoints.handlers import on_order

    return lambda delivery: on_order(world, delivery)


def read_signals(app: App, delivery: Delivery) -> tuple[Signal, ...]:
    """Turn a delivery into signals.

    Raises:
        InputRejected: The body can never become one.
    """
    run = delivery.attributes.get("run", LIVE)
    taken = signals_from(delivery.data, app.reading(run))
    if any(item.because is IgnoredBecause.CANARY for item in taken.ignored):
        log.info("canary.heard", run=run, message=delivery.message_id)
    return taken.signals


def report(delivery: Delivery, error: Exception, outcome: Outcome) -> None:
    """Write a delivery's failure and its outcome to the log."""
    log.warning("delivery.failed", topic=delivery.topic, message=delivery.message_id, outcome=outcome, error=str(error))


def _receiver(app: App, topic: Topic) -> Callable[[Delivery], Outcome]:
    handle = handler(app, topic)
    return lambda delivery: receive(delivery, handle, app.quarantine, report=report)


def publish_example(app: App, folder: Path) -> int:
    """Publish the recorded events of an example; those that were published before are noticed and kept once.

    Returns:
        How many events it has.
    """
    rows = (folder / "events.jsonl").read_text().splitlines()
    events = [json.loads(row) for row in rows if row.strip()]  # not strict: a recording of ours
    for event in events:
        app.bus.publish(entry_message(event))
    return len(events)


def feed(app: App, since: datetime | None) -> datetime | None:
    """Publish what the rehearsal's sink let through since then; return where to go on.

    An entry that was published already is noticed by its id, so that a restart may begin from the start.
    """
    if app.environment.rehearsal is None:
        return since
    _act_for_people(app)
    for item in app.environment.rehearsal.new_log_entries(since):
        app.bus.publish(entry_message(item.entry))
        since = item.at
    return since


def _act_for_people(app: App) -> None:
    """In a rehearsal nobody does what a person took on; what a person did on record is acted out instead."""
    assert app.environment.rehearsal is not None
    for incident in app.store.incidents(Query(open_only=True, limit=ACTED_FOR)):
        plan, verification = incident.plan, incident.verification
        if plan is not None and plan.by_person and verification is not None and incident.phase is Phase.VERIFYING:
            app.environment.rehearsal.take_on(incident.service, plan.id, at=verification.since)


def entry_message(entry: Mapping[str, object], *, attributes: Mapping[str, str] | None = None) -> Message:
    """Return a log entry as the message that a sink would publish."""
    body = canonical(entry).decode()
    more = dict(attributes or {})
    return Message(
        id=f"entry-{digest([body, more])[:24]}", topic=Topic.LOG_EVENTS, data=body, attributes={"run": LIVE, **more}
    )


class Ticker:
    """Runs the tick in a thread of its own; a tick that fails is logged, and the next one comes.

    Args:
        app: The service.
        every_s: Seconds between two ticks.
    """

    def __init__(self, app: App, *, every_s: float) -> None:
        self._app = app
        self._every_s = every_s
        self._stopping = threading.Event()
        self._since: datetime | None = None
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        """Start the thread; once."""
        self._thread.start()

    def stop(self) -> None:
        """Let the running tick end."""
        self._stopping.set()
        self._thread.join(10)

    def tick(self) -> None:
        """Run one tick in the calling thread."""
        from agent.entrypoints.handlers import on_tick

        self._since = feed(self._app, self._since)
        on_tick(self._app.contexts[Owner.TICK])

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self.tick()
            except SreError as error:
                log.warning("tick.failed", error=str(error))
            except Exception:
                log.exception("tick.broke")
