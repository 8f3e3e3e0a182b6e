"""Alertmanager: several alerts in one body, repeated and resolved."""

import pytest

from agent.core.intake.alertmanager import MOST_ALERTS, read_alertmanager
from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.intake.signal import AlertState
from agent.errors import InputRejected


def test_several_alerts_become_several_signals(sample):
    """Each alert has its own key, time and service."""
    body = sample("alertmanager_webhook_v4")
    first = body["alerts"][0]
    body["alerts"].append(first | {"fingerprint": "2", "labels": first["labels"] | {"service": "other"}})
    one, two = read_alertmanager(body, Reading())
    assert (one.service, two.service) == ("gemma4-vllm", "other")
    assert one.key != two.key


def test_a_repeated_notification_is_the_same_observation(sample):
    """``repeat interval elapsed`` brings the same key, so the store drops it."""
    body = sample("alertmanager_webhook_v4")
    repeated = sample("alertmanager_webhook_v4") | {"notification_reason": "repeat interval elapsed"}
    (one,), (again,) = read_alertmanager(body, Reading()), read_alertmanager(repeated, Reading())
    assert one.key == again.key


def test_resolved_closes_what_firing_opened_and_firing_anew_is_new(sample):
    """One alert id for both; another start is another firing."""
    opened = sample("alertmanager_webhook_v4")
    closed = sample("alertmanager_webhook_v4") | {"status": "resolved"}
    closed["alerts"][0] |= {"status": "resolved", "endsAt": "2026-11-20T10:45:00Z"}
    anew = sample("alertmanager_webhook_v4")
    anew["alerts"][0]["startsAt"] = "2026-11-20T11:00:00Z"
    (one,), (two,), (three,) = (read_alertmanager(body, Reading()) for body in (opened, closed, anew))
    assert one.alert_id == two.alert_id == three.alert_id
    assert (one.alert_state, two.alert_state) == (AlertState.OPEN, AlertState.CLOSED)
    assert two.at.isoformat() == "2026-11-20T10:45:00+00:00"
    assert one.fields["started_at"] == two.fields["started_at"] != three.fields["started_at"]
    assert len({one.key, two.key, three.key}) == 3


def test_a_bad_alert_does_not_take_the_good_ones_with_it(sample):
    """The good one is a signal, the bad one is listed."""
    body = sample("alertmanager_webhook_v4")
    body["alerts"] = ["nonsense", *body["alerts"], {"status": "perhaps", "labels": {}}]
    signal, *ignored = read_alertmanager(body, Reading())
    assert signal.service == "gemma4-vllm"
    assert [item.because for item in ignored] == [IgnoredBecause.MALFORMED] * 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": "5"}, "version '4' is '5'"),
        ({"alerts": []}, "alerts is []"),
        ({"alerts": {}}, "alerts is {}"),
        ({"alerts": [7]}, "alert is 7"),
        ({"alerts": [{}] * (MOST_ALERTS + 1)}, "at most 500"),
    ],
    ids=["version", "none", "no list", "no object", "too many"],
)
def test_a_body_that_can_never_work_is_refused(sample, change, why):
    """The refusal names the field."""
    with pytest.raises(InputRejected) as refused:
        read_alertmanager(sample("alertmanager_webhook_v4") | change, Reading())
    assert why in refused.value.why
