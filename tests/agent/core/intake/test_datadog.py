"""Datadog: a monitor's transitions open and close by its cycle; the payload is the one of the guide."""

import json
import re

import pytest

from agent.core.intake.datadog import read_datadog
from agent.core.intake.origin import Ignored, IgnoredBecause, Reading
from agent.core.intake.read import signals_from
from agent.core.intake.signal import AlertState
from agent.errors import InputRejected
from tests.agent.core.intake.test_read import DATA

SAMPLE = "datadog_webhook"


@pytest.mark.parametrize(
    ("transition", "state"),
    [
        ("Triggered", AlertState.OPEN),
        ("Re-Triggered", AlertState.OPEN),
        ("Warn", AlertState.OPEN),
        ("Re-Warn", AlertState.OPEN),
        ("Renotify", AlertState.OPEN),
        ("Recovered", AlertState.CLOSED),
    ],
)
def test_each_transition_is_a_state_of_one_alert(sample, transition, state):
    [found] = read_datadog(sample(SAMPLE) | {"alert_transition": transition}, Reading())
    assert (found.alert_id, found.alert_state) == ("15823406910231", state)


def test_a_notification_that_is_repeated_is_the_same_observation_and_another_cycle_another(sample):
    bodies = [sample(SAMPLE), sample(SAMPLE) | {"alert_transition": "Re-Triggered", "last_updated": "1795173000000"}]
    bodies += [sample(SAMPLE) | {"alert_cycle_key": "2"}]
    one, again, other = (read_datadog(body, Reading())[0].key for body in bodies)
    assert one == again != other


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"alert_transition": "No Data"}, IgnoredBecause.NO_VERDICT),
        ({"alert_transition": "Re-No Data"}, IgnoredBecause.NO_VERDICT),
        ({"title": "[TEST] [Triggered] x"}, IgnoredBecause.TEST),
    ],
)
def test_what_says_nothing_of_a_service_is_acknowledged(sample, change, because):
    [found] = read_datadog(sample(SAMPLE) | change, Reading())
    assert isinstance(found, Ignored)
    assert found.because is because


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"alert_transition": "Muted"}, "alert_transition is 'Muted'"),
        ({"alert_transition": 7}, "alert_transition is 7"),
        ({"alert_cycle_key": ""}, "alert_cycle_key is ''"),
        ({"alert_scope": "", "tags": "monitor"}, "service name is missing"),
        ({"last_updated": "soon"}, "time is missing"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_field(sample, change, why):
    with pytest.raises(InputRejected) as refused:
        read_datadog(sample(SAMPLE) | change, Reading())
    assert refused.value.why == why


def test_the_default_payload_is_refused_with_what_to_set():
    body = {
        "body": "x",
        "last_updated": "1",
        "event_type": "metric_alert_monitor",
        "title": "[Triggered] x",
        "date": "1",
    }
    with pytest.raises(InputRejected, match="names neither state nor service") as refused:
        signals_from(json.dumps(body | {"org": {"id": "1", "name": "x"}, "id": "2"}).encode(), Reading())
    assert "docs/intake.md" in refused.value.hint


def test_the_guide_shows_the_payload_that_is_read(sample):
    """Each variable of the guide stands where this reader looks, and the sample is that payload filled in."""
    guide = (DATA.parents[1] / "docs" / "intake.md").read_text()
    [payload] = re.findall(r"```json\n(\{\"alert_id\".*?\})\n```", guide, re.DOTALL)
    assert set(json.loads(payload)) == set(sample(SAMPLE))
