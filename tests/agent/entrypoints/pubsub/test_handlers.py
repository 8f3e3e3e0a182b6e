"""A delivery is handled and acknowledged whatever its handler raises, but for an interrupt; the canary goes no further."""

import dataclasses
import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from agent.app import build_app_in_memory
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.intake.read import signals_from
from agent.core.service.services import Services
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.pubsub.handlers import MOST_UNSENT, handle, on_tick, read_signals
from agent.ports.bus import Delivery, Message, Outcome, Topic
from agent.ports.stage_context import Owner
from agent.ports.store import Change
from agent.settings import read_settings

ENTRY = {
    "logName": "projects/p/logs/sre-canary",
    "resource": {"type": "global", "labels": {"project_id": "p"}},
    "insertId": "1",
    "timestamp": "2026-11-21T00:00:00Z",
    "textPayload": "Does the agent hear this? CUDA out of memory",
}


def heard(entry):
    clock = SimpleNamespace(now=lambda: datetime(2026, 11, 21, tzinfo=UTC))
    context = SimpleNamespace(rules=SimpleNamespace(services=Services(services=())), clock=clock)
    delivery = Delivery(topic=Topic.LOG_EVENTS, message_id="m1", data=json.dumps(entry).encode())
    with capture_logs() as logs:
        signals = read_signals(context, delivery)
    return signals, logs


def test_the_canary_is_heard_and_becomes_no_signal():
    """Its log decides, not its text; the log-based metric counts the event, and no incident can come of it."""
    signals, logs = heard(ENTRY)
    assert signals == ()
    assert [row["event"] for row in logs] == ["canary.received"]


def test_an_entry_of_another_log_is_no_canary():
    """A line that merely says so is read as any line."""
    signals, logs = heard(
        ENTRY | {"logName": "projects/p/logs/stdout", "resource": {"type": "x", "labels": {"service_name": "v"}}}
    )
    assert len(signals) == 1
    assert logs == []


def test_the_reason_is_said():
    """Ignored for being the canary, not for an unknown service."""
    taken = signals_from(json.dumps(ENTRY).encode(), Reading())
    assert [item.because for item in taken.ignored] == [IgnoredBecause.CANARY]


class Failing:
    """A store whose every use ends in one way."""

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        raise self._error


@pytest.fixture
def app(tmp_path):
    clock = SteppedClock(datetime(2026, 11, 21, tzinfo=UTC))
    return build_app_in_memory(read_settings({}, platform="none"), clock=clock, state=tmp_path)


FAILED = ENTRY | {
    "logName": "projects/p/logs/stdout",
    "resource": {"type": "cloud_run_revision", "labels": {"service_name": "v"}},
}


def test_what_was_handled_is_acknowledged(app):
    """Nothing is counted and nothing is kept aside."""
    delivery = Delivery(topic=Topic.LOG_EVENTS, message_id="m1", data=json.dumps(FAILED).encode())
    assert handle(app, delivery) is Outcome.ACK
    assert app.quarantine.rows() == ()


def test_a_bug_costs_one_message_and_never_the_queue(app):
    delivery = Delivery(topic=Topic.LOG_EVENTS, message_id="m1", data=json.dumps(FAILED).encode())
    broken = dataclasses.replace(app, store=Failing(ZeroDivisionError("bug")))
    assert handle(broken, delivery) is Outcome.RETRY


def test_an_interrupt_is_no_failure_of_the_message(app):
    """Stopping the process goes through."""
    delivery = Delivery(topic=Topic.LOG_EVENTS, message_id="m1", data=json.dumps(FAILED).encode())
    with pytest.raises(KeyboardInterrupt):
        handle(dataclasses.replace(app, store=Failing(KeyboardInterrupt())), delivery)


class Asked:
    """A store that notes whose outbox was asked for."""

    def __init__(self, store):
        self._store = store
        self.outboxes = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    def outbox(self, incident_id):
        self.outboxes.append(incident_id)
        return self._store.outbox(incident_id)


def left(app, name, *, due, unsent):
    """An incident as a process left it that died after its commit."""
    now = app.clock.now()
    at = {"opened_at": now, "phase_at": now, "quiet_since": now, "due_at": now if due else None}
    incident = Incident(
        id=name, run="live", service="v", platform="cloud_run", revision="v-1", episode=1, phase=Phase.OPEN, **at
    )
    message = Message(id=f"{name}.1.wake", topic=Topic.INCIDENTS, data="{}", attributes={})
    app.store.commit(Change(incident=incident, messages=(message,) if unsent else ()))


def test_a_tick_sends_what_was_left_unsent_and_looks_into_no_other_outbox(app):
    """Each look is a read of the database, once a minute for every open incident."""
    for name, due, unsent in (("inc-a", True, False), ("inc-b", True, True), ("inc-c", False, True)):
        left(app, name, due=due, unsent=unsent)
    asked = Asked(app.store)
    on_tick(dataclasses.replace(app.contexts[Owner.TICK], store=asked))
    assert asked.outboxes == ["inc-b", "inc-c"]
    assert app.store.unsent() == ()


def test_a_tick_looks_into_every_outbox_where_more_wait_than_were_listed(app):
    """An incident that was due and not listed may have something unsent all the same."""
    for number in range(MOST_UNSENT):
        left(app, f"inc-{number}", due=False, unsent=True)
    left(app, "inc-z", due=True, unsent=True)
    on_tick(app.contexts[Owner.TICK])
    assert app.store.unsent() == ()
