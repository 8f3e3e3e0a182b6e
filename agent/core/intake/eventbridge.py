"""A CloudWatch alarm's change of state, as EventBridge posts it (facts 5.4)."""

from collections.abc import Mapping
from typing import Any

from agent.core.intake.alert import alert
from agent.core.intake.origin import EC2, Ignored, IgnoredBecause, Origin, Reading
from agent.core.intake.wire import facts, first_time, missing, name, names, part, rows, shown, text
from agent.core.signal import AlertState, Signal
from agent.errors import InputRejected

SHAPE = "EventBridge event"
ALARM = "CloudWatch Alarm State Change"

_STATES = {"ALARM": AlertState.OPEN, "OK": AlertState.CLOSED}


def read_eventbridge(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of an alarm; missing data are no verdict, neither open nor closed.

    Raises:
        InputRejected: Another kind of event, no alarm name, an unknown state.
    """
    if body.get("detail-type") != ALARM:
        raise InputRejected(
            f"the {SHAPE} became no signal",
            why=f"detail-type is {shown(body.get('detail-type'))}",
            mend=f"let the rule match detail-type {ALARM!r} only",
        )
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
