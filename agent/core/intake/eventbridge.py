"""A CloudWatch alarm's change of state, or an instance's end, as EventBridge posts it (facts 5.4)."""

from collections.abc import Mapping
from typing import Any

from agent.core.intake.alert import alert
from agent.core.intake.ends import end_of
from agent.core.intake.json_fields import facts, first_time, missing, name, names, part, rows, shown, text
from agent.core.intake.origin import EC2, Ignored, IgnoredBecause, Origin, Reading, signal
from agent.core.intake.signal import AlertState, AskedBy, Signal, Source, Stop, log_key
from agent.core.value import digest
from agent.errors import InputRejected

SHAPE = "EventBridge event"
ALARM = "CloudWatch Alarm State Change"
INSTANCE = "EC2 Instance State-change Notification"
SCALED_IN = frozenset({"EC2 Instance-terminate Lifecycle Action", "EC2 Instance Terminate Successful"})
CALL = "AWS API Call via CloudTrail"
SPOT = frozenset({"EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"})
"""Two minutes before a spot instance is taken, and when that grows likely; nobody asked for it, so its end is no stop
(https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html, 2026-11-22)."""

_CALLS = {
    "StopInstances": Stop(by=AskedBy.OPERATOR),
    "RebootInstances": Stop(by=AskedBy.OPERATOR),
    "TerminateInstances": Stop(by=AskedBy.DELETION),
    "StartInstances": Stop(by=AskedBy.OPERATOR, over=True),
}
_GONE = frozenset({"stopping", "stopped", "shutting-down", "terminated"})

_STATES = {"ALARM": AlertState.OPEN, "OK": AlertState.CLOSED}


def read_eventbridge(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signals of an event: an alarm, an instance's end, or a call that asks for one.

    Raises:
        InputRejected: Another kind of event, no alarm name or instance, an unknown state.
    """
    kind = text(body, "detail-type")
    if kind == ALARM:
        return _alarm(body, reading)
    detail = part(body, "detail")
    if kind == INSTANCE:
        return [_instance(body, reading, text(detail, "instance-id"), text(detail, "state"), None)]
    if kind in SPOT:
        return [
            _instance(body, reading, text(detail, "instance-id"), text(detail, "instance-action"), None, warns=True)
        ]
    if kind in SCALED_IN:
        return [_instance(body, reading, text(detail, "EC2InstanceId"), "", Stop(by=AskedBy.SCALE_IN))]
    if kind == CALL and (stop := _CALLS.get(text(detail, "eventName"))) is not None:
        if detail.get("errorCode"):
            return [Ignored(because=IgnoredBecause.NO_VERDICT, what=f"{text(detail, 'eventName')} was refused"[:80])]
        asked = rows(part(detail, "requestParameters", "instancesSet"), "items")
        ids = [text(item, "instanceId") for item in asked if isinstance(item, Mapping)]
        return [_instance(body, reading, one, "", stop) for one in ids]
    raise InputRejected(
        f"the {SHAPE} became no signal",
        why=f"detail-type is {shown(body.get('detail-type'))}",
        hint=f"let the rule match detail-type {ALARM!r} or {INSTANCE!r}",
    )


def _instance(
    body: Mapping[str, Any], reading: Reading, instance: str, state: str, stop: Stop | None, *, warns: bool = False
) -> Signal | Ignored:
    """Tell an instance's end, a warning or a stop of it; an instance that starts or runs is no verdict.

    Its own event does not say who asked: a call or the group's event comes before it.
    """
    if not instance:
        raise missing(SHAPE, "instance id")
    if stop is None and state not in _GONE and not warns:
        return Ignored(because=IgnoredBecause.NO_VERDICT, what=f"{instance} {state}"[:80])
    origin = Origin(
        shape=SHAPE,
        platform=EC2,
        names=names(instance),
        project=text(body, "account"),
        location=text(body, "region"),
        labels={"InstanceId": instance},
    )
    at = first_time(body.get("time"))
    said = f"EC2 instance {instance} is {state}" if stop is None else f"{text(body, 'detail-type')}: {instance}"
    if warns:
        said = f"{text(body, 'detail-type')}: {instance}, no longer available spot capacity ({state or 'at risk'})"
    return signal(
        origin,
        reading,
        key=log_key(reading.run, log_name=SHAPE, insert_id=digest(dict(body)), timestamp=at.isoformat() if at else ""),
        source=Source.PLATFORM_LOG,
        at=at,
        said=said,
        instance=name(instance),
        fields=facts(state=state),
        severity="WARNING" if warns else "",
        end=end_of(reason=state) if stop is None and not warns else None,
        stop=stop,
    )


def _alarm(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Tell an alarm; missing data are no verdict, neither open nor closed."""
    detail = part(body, "detail")
    alarm, now = text(detail, "alarmName"), part(detail, "state")
    if not alarm:
        raise missing(SHAPE, "alarmName", detail.get("alarmName"))
    value = text(now, "value").upper()
    if value == "INSUFFICIENT_DATA":
        return [Ignored(because=IgnoredBecause.NO_VERDICT, what=alarm[:80])]
    state = _STATES.get(value)
    if state is None:
        raise missing(SHAPE, "state", now.get("value"))
    config, sizes = part(detail, "configuration"), _dimensions(detail)
    origin = Origin(
        shape=SHAPE,
        platform=EC2,
        names=names(sizes.get("ServiceName"), sizes.get("service"), sizes.get("InstanceId"), alarm),
        project=text(body, "account"),
        location=text(body, "region"),
        labels=sizes,
    )
    about = text(config, "description")
    return [
        alert(
            origin,
            reading,
            alert_id=next((item for item in rows(body, "resources") if isinstance(item, str)), alarm),
            state=state,
            started_at=_moment(now if state is AlertState.OPEN else part(detail, "previousState")),
            at=first_time(now.get("timestamp"), body.get("time")),
            said=": ".join(filter(None, (alarm, about, text(now, "reason")))),
            instance=name(sizes.get("InstanceId")),
            fields=facts(alarm=alarm, state=value, before=part(detail, "previousState").get("value")),
        )
    ]


def _moment(state: Mapping[str, Any]) -> str:
    at = first_time(state.get("timestamp"))
    return at.isoformat() if at else ""


def _dimensions(detail: Mapping[str, Any]) -> dict[str, str]:
    metrics = [row for row in rows(part(detail, "configuration"), "metrics") if isinstance(row, Mapping)]
    sizes = [part(row, "metricStat", "metric", "dimensions") for row in metrics]
    return {key: value for size in sizes for key, value in size.items() if isinstance(value, str)}
