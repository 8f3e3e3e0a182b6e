"""The embedded service: the same handlers as the functions, driven by the queue and a tick in one process."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from agent.app import App
from agent.core.incident.phase import Phase
from agent.core.intake.signal import LIVE
from agent.core.value import canonical, digest
from agent.entrypoints.pubsub.handlers import handle, on_tick
from agent.errors import SreError
from agent.ports.bus import Delivery, Message, Outcome, Topic
from agent.ports.stage_context import RECEIVER_OF, Owner
from agent.ports.store import Query
from agent.stages.observe_services import observe_services
from agent.stages.shared.outcome import StageOutcome
from agent.structured_log import structlog

OBSERVE_EVERY_S = 60.0  # as the scheduler of the cloud does
ACTED_FOR = 200  # open incidents of a rehearsal, at most, whose tasks are acted out
log = structlog.get_logger(__name__)


def handlers(app: App) -> dict[str, Callable[[Delivery], Outcome]]:
    """Return who handles each subscription's deliveries."""
    return {f"{topic}-sub": partial(handle, app) for topic in RECEIVER_OF}


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


def read_example(app: App, folder: Path) -> None:
    """Publish the recorded events of an example, and take them in one after another before any other work begins.

    Delivered at once they may open the incident in any order, and its id comes from the entry that did: this way it is
    the same each time, so that a guide can name it.
    """
    publish_example(app, folder)
    received = f"{Topic.LOG_EVENTS}-sub"
    app.worker({received: handlers(app)[received]}, threads=0).run_due()


def feed(app: App, since: datetime | None) -> datetime | None:
    """Publish what the rehearsal's sink let through since then; return where to go on.

    An entry that was published already is noticed by its id, so that a restart may begin from the start.
    """
    rehearsal = app.environment.rehearsal
    if rehearsal is None:
        return since
    _act_for_people(app, rehearsal.take_on)
    for item in rehearsal.new_log_entries(since):
        app.bus.publish(entry_message(item.entry))
        since = item.at
    return since


def _act_for_people(app: App, take_on: Callable[..., None]) -> None:
    """In a rehearsal nobody does what a person took on; what a person did on record is acted out instead."""
    for incident in app.store.incidents(Query(open_only=True, limit=ACTED_FOR)):
        plan, verification = incident.plan, incident.verification
        if plan is not None and plan.by_person and verification is not None and incident.phase is Phase.VERIFYING:
            take_on(incident.service, plan.id, at=verification.since)


def entry_message(entry: Mapping[str, object], *, attributes: Mapping[str, str] | None = None) -> Message:
    """Return a log entry as the message that a sink would publish."""
    body = canonical(entry).decode()
    more = dict(attributes or {})
    return Message(
        id=f"entry-{digest([body, more])[:24]}", topic=Topic.LOG_EVENTS, data=body, attributes={"run": LIVE, **more}
    )


class Ticker:
    """Runs the tick in a thread of its own; a tick that fails is logged, and the next one comes.

    A poll that found nothing new wrote nothing, so its incident stays due; it is polled again after ``POLL_S``.
    """

    def __init__(self, app: App, *, every_s: float) -> None:
        self._app = app
        self._every_s = every_s
        self._stopping = threading.Event()
        self._since: datetime | None = None
        self._observe_at = 0.0
        self._polled: dict[str, datetime] = {}
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
        self._since = feed(self._app, self._since)
        context = self._app.contexts[Owner.TICK]
        now, pause = context.clock.now(), timedelta(seconds=context.rules.times.poll_s)
        self._polled = {one: at for one, at in self._polled.items() if timedelta() <= now - at < pause}
        done = on_tick(context, polled=self._polled)
        self._polled |= {one: now for one, outcomes in done.items() if outcomes[-1:] == (StageOutcome.WAITING,)}
        if time.monotonic() >= self._observe_at:
            observe_services(context)
            self._observe_at = time.monotonic() + OBSERVE_EVERY_S / self._app.environment.wait_factor

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self.tick()
            except SreError as error:
                log.warning("tick.failed", error=str(error))
            except Exception:
                log.exception("tick.failed")
