"""Cloud Monitoring: opening and closing, old spellings, test notifications."""

import pytest

from agent.core.intake.monitoring import read_monitoring
from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.intake.signal import AlertState
from agent.errors import InputRejected


def one(body):
    (found,) = read_monitoring(body, Reading())
    return found


def test_closing_has_the_id_of_the_opening_and_its_own_key_and_time(sample):
    """The pair is recognised by the incident id."""
    body, closed = (sample("monitoring_alert_v1_2_open_cloud_run") for _ in range(2))
    closed["incident"] |= {"state": "CLOSED", "ended_at": 1795170000}
    opened, ended = one(body), one(closed)
    assert opened.alert_id == ended.alert_id
    assert ended.alert_state is AlertState.CLOSED
    assert opened.key != ended.key
    assert (ended.at - opened.at).total_seconds() == 300


def test_the_operators_advice_is_a_fact_and_not_an_observation(sample):
    """A runbook that mentions out of memory must not be classified as one; text and object are both read."""
    for document in ("if out of memory, restart", {"content": "if out of memory, restart"}):
        body = sample("monitoring_alert_v1_2_open_cloud_run")
        body["incident"]["documentation"] = document
        found = one(body)
        assert "out of memory" not in found.text
        assert found.fields["documentation"] == "if out of memory, restart"


def test_a_test_notification_is_ignored():
    """Version ``test`` comes with hardly any content."""
    assert one({"version": "test", "incident": {}}).because is IgnoredBecause.TEST


def test_acknowledged_is_neither_open_nor_closed(sample):
    """Somebody pressed a button; nothing was observed."""
    body = sample("monitoring_alert_v1_2_open_cloud_run")
    body["incident"]["state"] = "ACKNOWLEDGED"
    assert one(body).because is IgnoredBecause.NO_VERDICT


def test_only_id_and_state_are_needed_where_a_policy_label_names_the_service():
    """Older senders leave nearly everything out; seconds may come as text."""
    found = one(
        {
            "incident": {
                "incident_id": "x",
                "state": "OPEN",
                "started_at": "1795169700",
                "policy_user_labels": {"service": "gemma"},
            }
        }
    )
    assert (found.service, found.platform, found.at.isoformat()) == ("gemma", "unknown", "2026-11-20T10:15:00+00:00")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"incident_id": ""}, "incident_id is ''"),
        ({"incident_id": 5}, "incident_id is 5"),
        ({"state": "half"}, "state is 'half'"),
        ({"state": None}, "state is missing"),
        ({"started_at": 10**30}, "time is missing"),
        ({"started_at": True}, "time is missing"),
    ],
)
def test_an_incident_that_cannot_be_kept_apart_is_refused(sample, change, why):
    """The refusal names the field."""
    body = sample("monitoring_alert_v1_2_open_cloud_run")
    body["incident"] |= change
    with pytest.raises(InputRejected) as refused:
        one(body)
    assert refused.value.why == why
