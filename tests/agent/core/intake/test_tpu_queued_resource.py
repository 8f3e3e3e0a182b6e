"""TPU queued resources: a state is one observation, at the time it was seen."""

from datetime import UTC, datetime

import pytest

from agent.core.intake.origin import Reading
from agent.core.intake.tpu_queued_resource import read_queued_resource
from agent.errors import InputRejected


def test_a_state_seen_twice_is_one_observation_and_the_next_state_another(sample):
    """Polling does not make news."""
    now = Reading(received_at=datetime(2026, 11, 21, tzinfo=UTC))
    (waiting,) = read_queued_resource(sample("tpu_queued_resource_waiting"), Reading())
    (again,) = read_queued_resource(sample("tpu_queued_resource_waiting"), now)
    (active,) = read_queued_resource(sample("tpu_queued_resource_active"), Reading())
    assert waiting.key == again.key != active.key
    assert again.at == now.received_at


def test_the_startup_script_stays_out(sample):
    """It is readable from the machine and may hold a token."""
    (found,) = read_queued_resource(sample("tpu_queued_resource_failed"), Reading())
    assert "docker" not in found.model_dump_json()
    assert "no more capacity" in found.text


def test_a_resource_without_a_state_is_refused(sample):
    """There is nothing to tell."""
    with pytest.raises(InputRejected, match="state is missing"):
        read_queued_resource(sample("tpu_queued_resource_failed") | {"state": {}}, Reading())
