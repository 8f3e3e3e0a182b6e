"""Grafana: its alerts open and close incidents as Alertmanager's do; what says nothing of a service opens none."""

import pytest

from agent.core.intake.grafana import read_grafana
from agent.core.intake.origin import Ignored, IgnoredBecause, Reading
from agent.core.intake.read import shape_of
from agent.core.intake.signal import AlertState
from agent.errors import InputRejected

SAMPLE = "grafana_webhook_v1"


def labelled(body, **labels):
    [alert] = body["alerts"]
    return body | {"alerts": [alert | {"labels": alert["labels"] | labels}]}


def test_resolved_closes_what_firing_opened_and_a_repetition_is_the_same(sample):
    closed = sample(SAMPLE) | {"status": "resolved"}
    closed["alerts"][0] |= {"status": "resolved", "endsAt": "2026-11-20T10:45:00Z"}
    (one,), (again,), (two,) = (read_grafana(body, Reading()) for body in (sample(SAMPLE), sample(SAMPLE), closed))
    assert one.key == again.key != two.key
    assert one.alert_id == two.alert_id == "c6eadffa33fcdf37"
    assert (one.alert_state, two.alert_state) == (AlertState.OPEN, AlertState.CLOSED)
    assert one.fields["dashboard"].startswith("https://grafana.example.com/d/vllm")


@pytest.mark.parametrize(
    ("labels", "because"),
    [
        ({"alertname": "DatasourceNoData"}, IgnoredBecause.NO_VERDICT),
        ({"alertname": "DatasourceError"}, IgnoredBecause.NO_VERDICT),
        ({"alertname": "TestAlert", "instance": "Grafana"}, IgnoredBecause.TEST),
    ],
)
def test_what_says_nothing_of_a_service_is_acknowledged_and_opens_nothing(sample, labels, because):
    [found] = read_grafana(labelled(sample(SAMPLE), **labels), Reading())
    assert isinstance(found, Ignored)
    assert found.because is because


def test_a_word_about_grafana_does_not_take_a_service_with_it(sample):
    body = sample(SAMPLE)
    body["alerts"] += labelled(sample(SAMPLE), alertname="DatasourceNoData")["alerts"]
    signal, ignored = read_grafana(body, Reading())
    assert (signal.service, ignored.because) == ("gemma4-vllm", IgnoredBecause.NO_VERDICT)


@pytest.mark.parametrize("change", [{"version": "4"}, {"alerts": []}, {"alerts": [7]}, {"alerts": [{}] * 501}])
def test_what_is_no_notification_is_refused(sample, change):
    with pytest.raises(InputRejected, match="Grafana notification"):
        read_grafana(sample(SAMPLE) | change, Reading())


def test_it_is_told_from_alertmanagers(sample):
    assert shape_of(sample(SAMPLE))[0] == "grafana"
    assert shape_of(sample("alertmanager_webhook_v4"))[0] == "alertmanager"
