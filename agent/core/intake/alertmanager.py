"""Alertmanager's webhook, version 4: several alerts in one body (facts: docs/configuration.md, 2026-08-22)."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.intake.alert import alert
from agent.core.intake.json_fields import facts, first_time, missing, name, names, part, rows, shown, text
from agent.core.intake.kubernetes import replica_set, workload
from agent.core.intake.origin import CLOUD_RUN, KUBERNETES, UNKNOWN, Ignored, IgnoredBecause, Origin, Reading
from agent.core.intake.signal import AlertState, Signal
from agent.core.value import digest
from agent.errors import InputRejected

SHAPE = "Alertmanager notification"
MOST_ALERTS = 500

_STATES = {"firing": AlertState.OPEN, "resolved": AlertState.CLOSED}


def read_alertmanager(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return a signal per alert; a repeated notification makes the same keys and is thereby known.

    A malformed alert among good ones is listed as ignored, so that it loses nobody else's.

    Raises:
        InputRejected: Another version, no alerts, more than ``MOST_ALERTS``, or none that is usable.
    """
    if body.get("version") != "4":
        raise missing(SHAPE, "version '4'", body.get("version"))
    return read_alerts(SHAPE, rows(body, "alerts"), body, reading)


def read_alerts(shape: str, alerts: Sequence[Any], body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return a signal per alert of a body that has Alertmanager's form.

    Raises:
        InputRejected: No alerts, more than ``MOST_ALERTS``, or none that is usable.
    """
    if not alerts:
        raise missing(shape, "alerts", body.get("alerts"))
    if len(alerts) > MOST_ALERTS:
        raise InputRejected(
            f"the {shape} became no signal",
            why=f"it holds {len(alerts)} alerts, at most {MOST_ALERTS} are taken",
            hint="set a maximum of alerts in its webhook",
        )
    taken: list[Signal | Ignored] = []
    refused: list[InputRejected] = []
    for item in alerts:
        try:
            taken.append(_one(shape, item, body, reading))
        except InputRejected as error:
            refused.append(error)
    if not taken:
        raise refused[0]
    return taken + [Ignored(because=IgnoredBecause.MALFORMED, what=error.why[:200]) for error in refused]


def _one(shape: str, item: object, body: Mapping[str, Any], reading: Reading) -> Signal | Ignored:
    if not isinstance(item, Mapping):
        raise missing(shape, "alert", item)
    state = _STATES.get(text(item, "status").lower())
    if state is None:
        raise missing(shape, "status", item.get("status"))
    labels, notes = part(item, "labels"), part(item, "annotations")
    started, ended = text(item, "startsAt"), text(item, "endsAt")
    pod = name(labels.get("exported_pod")) or name(labels.get("pod"))
    said = ": ".join(filter(None, (text(labels, "alertname"), text(notes, "summary", "description", "message"))))
    return alert(
        _origin(shape, labels, pod),
        reading,
        alert_id=text(item, "fingerprint") or digest(dict(labels))[:16],
        state=state,
        started_at=_moment(started),
        at=first_time(ended, started) if state is AlertState.CLOSED else first_time(started),
        said=said or f"an alert without words {shown(dict(labels))}",
        severity=text(labels, "severity"),
        revision=name(labels.get("revision_name")) or (replica_set(pod) if pod else None),
        instance=pod or name(labels.get("instance")),
        fields=facts(
            alertname=labels.get("alertname"),
            description=notes.get("description"),
            model_name=labels.get("model_name"),
            runbook_url=notes.get("runbook_url"),
            url=item.get("generatorURL"),
            dashboard=item.get("dashboardURL"),
            panel=item.get("panelURL"),
            values=item.get("valueString"),
            group=body.get("groupKey"),
            notification_reason=body.get("notification_reason"),
        ),
    )


def _moment(said: str) -> str:
    at = first_time(said)
    return at.isoformat() if at else ""


def _origin(shape: str, labels: Mapping[str, Any], pod: str | None) -> Origin:
    if labels.get("cluster") == "__run__":
        platform = CLOUD_RUN
    else:
        platform = KUBERNETES if pod or "namespace" in labels or "exported_namespace" in labels else UNKNOWN
    return Origin(
        shape=shape,
        platform=platform,
        names=names(
            labels.get("service"),
            labels.get("service_name"),
            labels.get("app"),
            labels.get("deployment"),
            labels.get("statefulset"),
            pod and workload(pod),
            labels.get("job"),
            labels.get("container"),
            labels.get("model_name"),
            labels.get("instance"),
        ),
        namespace=text(
            labels, "exported_namespace", "namespace"
        ),  # Prometheus renames what its target's own labels hide
        project=text(labels, "project_id"),
        location=text(labels, "location", "region", "zone"),
        labels=labels,
    )
