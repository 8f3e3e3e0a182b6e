"""CloudWatch alarms through EventBridge."""

import pytest

from agent.core.intake.eventbridge import read_eventbridge
from agent.core.intake.origin import IgnoredBecause, Reading
from agent.core.signal import AlertState
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
        read_eventbridge(
            sample("eventbridge_cloudwatch_alarm") | {"detail-type": "EC2 Instance State-change"}, Reading()
        )
    assert refused.value.mend == "let the rule match detail-type 'CloudWatch Alarm State Change' only"
