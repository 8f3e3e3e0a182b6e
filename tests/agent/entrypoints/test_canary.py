"""The canary is heard at intake and goes no further."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

from structlog.testing import capture_logs

from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.intake.read import signals_from
from agent.entrypoints.service import read_signals
from agent.ports.bus import Delivery, Topic

ENTRY = {
    "logName": "projects/p/logs/sre-canary",
    "resource": {"type": "global", "labels": {"project_id": "p"}},
    "insertId": "1",
    "timestamp": "2026-11-21T00:00:00Z",
    "textPayload": "Does the agent hear this? CUDA out of memory",
}


def heard(entry):
    outfit = SimpleNamespace(reading=lambda run: Reading(run=run, received_at=datetime(2026, 11, 21, tzinfo=UTC)))
    delivery = Delivery(topic=Topic.LOG_EVENTS, message_id="m1", data=json.dumps(entry).encode())
    with capture_logs() as logs:
        signals = read_signals(outfit, delivery)
    return signals, logs


def test_the_canary_is_heard_and_becomes_no_signal():
    """Its log decides, not its text; the log-based metric counts the event, and no incident can come of it."""
    signals, logs = heard(ENTRY)
    assert signals == ()
    assert [row["event"] for row in logs] == ["canary.heard"]


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
