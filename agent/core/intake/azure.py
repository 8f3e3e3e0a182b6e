"""Azure: the common alert schema, and Container Apps log rows in their three spellings (facts 5.1)."""

import re
from collections.abc import Mapping
from typing import Any

from agent.core.intake.alert import alert
from agent.core.intake.ends import container_apps_end, reports_sigterm
from agent.core.intake.json_fields import facts, first_time, missing, name, names, part, rows, text
from agent.core.intake.origin import CONTAINER_APPS, UNKNOWN, Ignored, Origin, Reading, signal
from agent.core.intake.signal import AlertState, AskedBy, Signal, Source, Stop, log_key
from agent.core.value import digest

ALERT = "Azure common alert"
ROW = "Container Apps log row"
SCHEMA = "azureMonitorCommonAlertSchema"

_STATES = {"fired": AlertState.OPEN, "resolved": AlertState.CLOSED}
_SCALED_TO_ZERO = {"KEDAScaleTargetDeactivated": False, "KEDAScaleTargetActivated": True}  # KEDA's own events
_TARGET = re.compile(r"/containerapps/([^/]{1,253})", re.IGNORECASE)


def read_azure_alert(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of an alert that fired or was resolved; dimensions name the app before targets do.

    Raises:
        InputRejected: No alert id or state, or nothing names a service.
    """
    essentials, context = part(body, "data", "essentials"), part(body, "data", "alertContext")
    alert_id = text(essentials, "alertId", "originAlertId")
    if not alert_id:
        raise missing(ALERT, "alertId", essentials.get("alertId"))
    state = _STATES.get(text(essentials, "monitorCondition").lower())
    if state is None:
        raise missing(ALERT, "monitorCondition", essentials.get("monitorCondition"))
    conditions = [row for row in rows(part(context, "condition"), "allOf") if isinstance(row, Mapping)]
    sizes = _dimensions(conditions)
    fired, resolved = essentials.get("firedDateTime"), essentials.get("resolvedDateTime")
    rule, about = text(essentials, "alertRule"), text(essentials, "description")
    first = conditions[0] if conditions else {}
    return [
        alert(
            _alert_origin(essentials, sizes),
            reading,
            alert_id=alert_id,
            state=state,
            started_at=at.isoformat() if (at := first_time(fired)) else "",
            at=first_time(resolved, fired) if state is AlertState.CLOSED else first_time(fired),
            said=": ".join(filter(None, (rule, about))) or "an alert without words",
            severity=text(essentials, "severity"),
            revision=name(sizes.get("RevisionName_s")) or name(sizes.get("RevisionName")),
            instance=name(sizes.get("ReplicaName_s")) or name(sizes.get("ReplicaName")),
            fields=facts(
                rule=rule,
                query=first.get("searchQuery"),
                metric=first.get("metricName"),
                threshold=first.get("threshold"),
                observed=first.get("metricValue"),
            ),
        )
    ]


def read_container_apps_row(row: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of one row: system rows have a reason, console rows are the server's own words.

    Raises:
        InputRejected: It says nothing, or has no time.
    """
    reason, words = text(row, "Reason_s", "Reason"), text(row, "Log_s", "Log", "Msg")
    if not words and not reason:
        raise missing(ROW, "Log_s", row.get("Log_s"))
    at = first_time(row.get("TimeGenerated"), row.get("time_t"), row.get("TimeStamp"))
    origin = Origin(
        shape=ROW,
        platform=CONTAINER_APPS,
        names=names(row.get("ContainerAppName_s"), row.get("ContainerAppName")),
        namespace=text(row, "EnvironmentName_s", "EnvironmentName"),
        labels=row,
    )
    return [
        signal(
            origin,
            reading,
            key=log_key(reading.run, log_name=ROW, insert_id=digest(dict(row)), timestamp=at.isoformat() if at else ""),
            source=Source.PLATFORM_LOG if reason else Source.APP_LOG,
            at=at,
            said=": ".join(filter(None, (reason, words))),
            revision=name(row.get("RevisionName_s")) or name(row.get("RevisionName")),
            instance=name(row.get("ReplicaName_s")) or name(row.get("ReplicaName")),
            severity=text(row, "Level", "Type_s") or (text(row, "Type") if reason else ""),
            fields=facts(
                reason=reason,
                container=text(row, "ContainerName_s", "ContainerName"),
                count=row.get("Count_d", row.get("Count")),
            ),
            end=container_apps_end(words) if reason else None,
            stop=_stop(reason, words),
        )
    ]


def _stop(reason: str, words: str) -> Stop | None:
    """Return the stop that a row tells; in a replica only the platform can send SIGTERM."""
    if (over := _SCALED_TO_ZERO.get(reason)) is not None:
        return Stop(by=AskedBy.SCALE_IN, over=over)
    return Stop(by=AskedBy.SCALE_IN_OR_ROLLOUT) if not reason and reports_sigterm(words) else None


def is_container_apps_row(body: Mapping[str, Any]) -> bool:
    """Whether a body is a row of a Container Apps log."""
    return "ContainerAppName_s" in body or "ContainerAppName" in body


def _dimensions(conditions: list[Mapping[str, Any]]) -> dict[str, str]:
    pairs = [pair for row in conditions for pair in rows(row, "dimensions") if isinstance(pair, Mapping)]
    return {text(pair, "name"): text(pair, "value") for pair in pairs}


def _alert_origin(essentials: Mapping[str, Any], sizes: Mapping[str, str]) -> Origin:
    targets = [item for item in rows(essentials, "alertTargetIDs") if isinstance(item, str)]
    apps = [found[1] for target in targets if (found := _TARGET.search(target))]
    items = [item for item in rows(essentials, "configurationItems") if isinstance(item, str)]
    named = names(sizes.get("ContainerAppName_s"), sizes.get("ContainerAppName"), sizes.get("service"), *apps)
    return Origin(
        shape=ALERT,
        platform=CONTAINER_APPS if named else UNKNOWN,
        names=(*named, *names(*items)),
        labels=sizes,
        project=next((target.split("/")[2] for target in targets if target.count("/") > 2), ""),
    )
