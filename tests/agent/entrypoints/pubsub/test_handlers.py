"""A delivery is handled and acknowledged whatever its handler raises, but for an interrupt; the canary goes no further."""

import dataclasses
import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from agent.app import build_app_in_memory
from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.intake.read import signals_from
from agent.core.service.services import Services
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.pubsub.handlers import handle, read_signals
from agent.ports.bus import Delivery, Outcome, Topic
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
