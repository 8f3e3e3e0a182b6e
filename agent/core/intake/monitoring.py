"""A Cloud Monitoring notification, schema 1.2 and the ones before it (facts: the published v1.2 example)."""

from collections.abc import Mapping
from typing import Any

from agent.core.intake.alert import alert
from agent.core.intake.json_fields import facts, first_time, missing, name, names, part, text
from agent.core.intake.kubernetes import replica_set, workload
from agent.core.intake.origin import CLOUD_RUN, Ignored, IgnoredBecause, Origin, Reading, platform_of
from agent.core.intake.signal import AlertState, Signal

SHAPE = "Monitoring alert"

_STATES = {"open": AlertState.OPEN, "closed": AlertState.CLOSED}


def read_monitoring(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of an incident's opening or closing; a test notification is ignored.

    Raises:
        InputRejected: ``incident_id`` or ``state`` is missing, or nothing names a service.
    """
    incident = part(body, "incident")
    if text(body, "version").lower() == "test":
        return [Ignored(because=IgnoredBecause.TEST, what=text(incident, "policy_name")[:80])]
    alert_id = text(incident, "incident_id")
    if not alert_id:
        raise missing(SHAPE, "incident_id", incident.get("incident_id"))
    said_state = text(incident, "state").lower()
    if said_state == "acknowledged":
        return [Ignored(because=IgnoredBecause.NO_VERDICT, what=alert_id[:80])]
    state = _STATES.get(said_state)
    if state is None:
        raise missing(SHAPE, "state", incident.get("state"))
    started, ended = incident.get("started_at"), incident.get("ended_at")
    labels = part(incident, "resource", "labels")
    pod = name(labels.get("pod_name"))
    return [
        alert(
            _origin(incident, labels, pod),
            reading,
            alert_id=alert_id,
            state=state,
            started_at="",
            at=first_time(_seconds(ended), _seconds(started))
            if state is AlertState.CLOSED
            else first_time(_seconds(started)),
            said=_words(incident),
            severity=text(incident, "severity"),
            revision=name(labels.get("revision_name")) or (replica_set(pod) if pod else None),
            instance=pod or name(labels.get("instance_id")),
            fields=_fields(incident),
        )
    ]


def _origin(incident: Mapping[str, Any], labels: Mapping[str, Any], pod: str | None) -> Origin:
    kind = text(part(incident, "resource"), "type")
    users, metric = part(incident, "policy_user_labels"), part(incident, "metric", "labels")
    platform = platform_of(kind)
    if labels.get("cluster") == "__run__":  # what the managed Prometheus sidecar writes on Cloud Run
        platform = CLOUD_RUN
    return Origin(
        shape=SHAPE,
        platform=platform,
        names=names(
            users.get("service"),
            labels.get("service_name"),
            metric.get("service_name"),
            metric.get("service"),
            pod and workload(pod),
            labels.get("job"),
            labels.get("node_id"),
            labels.get("container_name"),
            labels.get("namespace"),
            incident.get("resource_display_name"),
            labels.get("instance_id"),
        ),
        project=text(labels, "project_id") or text(incident, "scoping_project_id"),
        location=text(labels, "location", "zone"),
        namespace=text(labels, "namespace_name"),
        labels={**users, **labels},
        marks=part(incident, "metadata", "user_labels"),
    )


def _words(incident: Mapping[str, Any]) -> str:
    """Policy, condition, summary; the documentation is the operator's advice, not an observation."""
    said = (text(incident, "policy_name"), text(incident, "condition_name"), text(incident, "summary"))
    return ": ".join(dict.fromkeys(word for word in said if word)) or "an alert without words"


def _fields(incident: Mapping[str, Any]) -> dict[str, str]:
    metric = part(incident, "metric")
    document = incident.get("documentation")
    labels = part(metric, "labels")
    return facts(
        policy=incident.get("policy_name"),
        condition=incident.get("condition_name"),
        metric=metric.get("type"),
        query=part(incident, "condition", "conditionPrometheusQueryLanguage").get("query"),
        threshold=incident.get("threshold_value"),
        observed=incident.get("observed_value"),
        response_code_class=labels.get("response_code_class"),
        model_name=labels.get("model_name"),
        url=text(incident, "url", "apigee_url"),
        documentation=document if isinstance(document, str) else text(part(incident, "documentation"), "content"),
    )


def _seconds(value: object) -> object:
    """Numbers sometimes come as text."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20 else value
