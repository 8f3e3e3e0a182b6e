"""Datadog's webhook with the payload of docs/intake.md: one state of one monitor for one group."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from agent.core.intake.alert import alert
from agent.core.intake.json_fields import facts, missing, name, names, text, time_of
from agent.core.intake.kubernetes import replica_set, workload
from agent.core.intake.origin import KUBERNETES, UNKNOWN, Ignored, IgnoredBecause, Origin, Reading
from agent.core.intake.signal import AlertState, Signal

SHAPE: Final = "Datadog notification"
_TRANSITIONS: Final = {
    "triggered": AlertState.OPEN,
    "warn": AlertState.OPEN,
    "renotify": AlertState.OPEN,
    "recovered": AlertState.CLOSED,
}
"""``$ALERT_TRANSITION`` without ``Re-``: https://docs.datadoghq.com/integrations/webhooks (2026-11-22)."""
_NO_DATA: Final = "no data"
_MS: Final = re.compile(r"[1-9][0-9]{12}")
_MOST_TAGS: Final = 200


def is_datadog(body: Mapping[str, Any]) -> bool:
    """Whether a body has the payload of docs/intake.md."""
    return "alert_transition" in body and "alert_cycle_key" in body


def read_datadog(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of a transition; its cycle links an opening to its closing.

    Raises:
        InputRejected: No transition that is known, no cycle, no service among the tags, or no time.
    """
    transition = text(body, "alert_transition").strip().lower().removeprefix("re-")
    title = text(body, "title")
    if title.startswith("[TEST]"):
        return [Ignored(because=IgnoredBecause.TEST, what=title[:200])]
    if transition == _NO_DATA:
        return [Ignored(because=IgnoredBecause.NO_VERDICT, what=title[:200])]
    state, cycle = _TRANSITIONS.get(transition), text(body, "alert_cycle_key")
    if state is None:
        raise missing(SHAPE, "alert_transition", body.get("alert_transition"))
    if not cycle:
        raise missing(SHAPE, "alert_cycle_key", body.get("alert_cycle_key"))
    tags = _tags(text(body, "alert_scope"), text(body, "tags"))
    pod = name(tags.get("pod_name"))
    found = alert(
        _origin(tags, pod),
        reading,
        alert_id=cycle,
        state=state,
        started_at="",
        at=_moment(body),
        said=": ".join(filter(None, (title, text(body, "message")))) or "an alert without words",
        severity=text(body, "alert_type"),
        revision=replica_set(pod) if pod else None,
        instance=pod or name(tags.get("host")),
        fields=facts(monitor=body.get("alert_id"), query=body.get("alert_query"), url=body.get("link")),
    )
    return [found]


def _moment(body: Mapping[str, Any]) -> datetime | None:
    """The event's own time, in milliseconds since 1970 as Datadog writes it."""
    said = text(body, "last_updated", "date")
    return time_of(int(said) / 1000) if _MS.fullmatch(said) else time_of(said)


def _tags(*lists: str) -> dict[str, str]:
    """Read ``key:value`` tags, separated by commas; of a key that stands twice the first one counts."""
    found: dict[str, str] = {}
    for tag in ",".join(lists).split(",")[:_MOST_TAGS]:
        key, colon, value = tag.strip().partition(":")
        if colon and key and value:
            found.setdefault(key, value)
    return found


def _origin(tags: Mapping[str, str], pod: str | None) -> Origin:
    namespace = tags.get("kube_namespace", "")
    return Origin(
        shape=SHAPE,
        platform=KUBERNETES if pod or namespace else UNKNOWN,
        names=names(
            tags.get("service"),
            tags.get("kube_deployment"),
            tags.get("kube_stateful_set"),
            pod and workload(pod),
            tags.get("app"),
            tags.get("service_name"),
            tags.get("model_name"),
            tags.get("host"),
        ),
        namespace=namespace,
        project=tags.get("project_id", ""),
        location=tags.get("location", ""),
        labels=tags,
    )
