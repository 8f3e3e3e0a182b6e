"""CloudWatch alarms through EventBridge."""

import pytest

from agent.core.intake.eventbridge import read_eventbridge
from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.intake.signal import AlertState, AskedBy, Stop
from agent.errors import InputRejected


def test_ok_closes_the_alarm_that_was_raised(sample):
    """The closing names the moment the alarm began, so the two belong together."""
    body, done = (sample("eventbridge_cloudwatch_alarm") for _ in range(2))
    done["detail"]["previousState"] = body["detail"]["state"]
    done["detail"]["state"] = {"value": "OK", "reason": "fine", "timestamp": "2026-11-20T10:25:00.000+0000"}
    (raised,), (closed,) = read_eventbridge(body, Reading()), read_eventbridge(done, Reading())
    assert (raised.alert_state, closed.alert_state) == (AlertState.OPEN, AlertState.CLOSED)
    assert raised.alert_id == closed.alert_id
    assert raised.fields["started_at"] == closed.fields["started_at"] == "2026-11-20T10:15:00+00:00"
    assert closed.at.isoformat() == "2026-11-20T10:25:00+00:00"


def test_missing_data_are_no_verdict(sample):
    """Neither open nor closed."""
    body = sample("eventbridge_cloudwatch_alarm")
    body["detail"]["state"]["value"] = "INSUFFICIENT_DATA"
    (found,) = read_eventbridge(body, Reading())
    assert found.because is IgnoredBecause.NO_VERDICT


def test_another_event_is_refused_with_the_rule_to_set(sample):
    """A rule that matches everything is the operator's to mend."""
    with pytest.raises(InputRejected) as refused:
        read_eventbridge(sample("eventbridge_cloudwatch_alarm") | {"detail-type": "Scheduled Event"}, Reading())
    assert refused.value.hint == (
        "let the rule match detail-type 'CloudWatch Alarm State Change' or 'EC2 Instance State-change Notification'"
    )


def told(kind, **detail):
    return {
        "detail-type": kind,
        "account": "1",
        "region": "us-east-1",
        "time": "2026-11-20T10:15:00Z",
        "detail": detail,
    }


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated"])
def test_an_instance_that_goes_is_an_end(state):
    """The notification does not say who asked; the call, or the group's event, says it before."""
    event = told("EC2 Instance State-change Notification", **{"instance-id": "i-0abc", "state": state})
    (found,) = read_eventbridge(event, Reading())
    assert found.ends_unasked
    assert (found.end.reason, found.instance, found.platform) == (state, "i-0abc", "ec2")


@pytest.mark.parametrize("state", ["pending", "running"])
def test_an_instance_that_comes_is_no_verdict(state):
    event = told("EC2 Instance State-change Notification", **{"instance-id": "i-0abc", "state": state})
    (found,) = read_eventbridge(event, Reading())
    assert found.because is IgnoredBecause.NO_VERDICT


def test_a_call_that_was_refused_asks_for_nothing():
    """CloudTrail tells refused calls as well; then nobody is stopped."""
    items = {"instancesSet": {"items": [{"instanceId": "i-0abc"}]}}
    call = told("AWS API Call via CloudTrail", eventName="StopInstances", requestParameters=items)
    (asked,) = read_eventbridge(call, Reading())
    assert asked.stop == Stop(by=AskedBy.OPERATOR)
    refused = told(
        "AWS API Call via CloudTrail", eventName="StopInstances", requestParameters=items, errorCode="Denied"
    )
    (ignored,) = read_eventbridge(refused, Reading())
    assert ignored.because is IgnoredBecause.NO_VERDICT


@pytest.mark.parametrize("kind", ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"])
def test_a_spot_instance_that_will_be_taken_is_a_warning_and_no_end(kind):
    """The end comes two minutes later as its own event, and nobody asked for it."""
    (found,) = read_eventbridge(told(kind, **{"instance-id": "i-0abc", "instance-action": "terminate"}), Reading())
    assert (found.end, found.stop, found.severity) == (None, None, "WARNING")
    assert "no longer available spot capacity" in found.text
    assert found.instance == "i-0abc"
