"""Kubernetes: what workloads and nodes say of themselves, as signals of the services that they carry."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from agent.core.intake.json_fields import facts, first_time, name, names, part, rows, text
from agent.core.intake.kubernetes import pod_origin, pod_revision
from agent.core.intake.origin import KUBERNETES, Ignored, Origin, Reading, signal
from agent.core.intake.signal import Signal, Source, Waiting, log_key
from agent.core.value import digest

_REPLICA_SET = re.compile(r'ReplicaSet "([a-z0-9][a-z0-9.-]{0,252})"')
_PRESSURE = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
"""Conditions that the kubelet keeps itself; what they lead to is told by the pods that are evicted."""
TERMINATING = frozenset({"cloud.google.com/impending-node-termination", "aws-node-termination-handler/spot-itn"})
"""Taints that a cloud's agent puts on a spot node shortly before it is taken
(https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms, aws-node-termination-handler; 2026-11-22)."""


def read_workload(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signals of a Deployment or StatefulSet: a rollout that is stuck, pods that cannot be made."""
    metadata, status = part(body, "metadata"), part(body, "status")
    origin = Origin(
        shape="workload",
        platform=KUBERNETES,
        names=names(metadata.get("name")),
        namespace=text(metadata, "namespace"),
    )
    found: list[Signal | Ignored] = []
    for row in rows(status, "conditions"):
        if not isinstance(row, Mapping) or not _is_trouble(row):
            continue
        at = first_time(row.get("lastTransitionTime"), row.get("lastUpdateTime"))
        said = ": ".join(filter(None, (text(row, "reason"), text(row, "message"))))
        made = _REPLICA_SET.search(text(row, "message"))
        found.append(
            signal(
                origin,
                reading,
                key=_key(reading, "workload", [text(metadata, "uid"), said], at.isoformat() if at else ""),
                source=Source.PLATFORM_LOG,
                at=at,
                said="\n".join((said, *_replicas(status))),
                revision=made[1] if made else None,
                severity="WARNING",
                fields=facts(reason=row.get("reason"), generation=metadata.get("generation")),
                waiting=Waiting.FOR_A_PLACE,
            )
        )
    return found


def _is_trouble(row: Mapping[str, Any]) -> bool:
    stuck = row.get("type") == "Progressing" and row.get("status") == "False"
    return stuck or (row.get("type") == "ReplicaFailure" and row.get("status") == "True")


def _replicas(status: Mapping[str, Any]) -> Iterator[str]:
    """Say that pods of before still serve while new ones cannot: then they may hold what the new ones wait for."""
    total, updated = status.get("replicas"), status.get("updatedReplicas") or 0
    ready, lacking = status.get("readyReplicas"), status.get("unavailableReplicas")
    old = isinstance(total, int) and isinstance(updated, int) and total > updated
    if old and isinstance(ready, int) and ready > 0 and isinstance(lacking, int) and lacking > 0:
        yield f"readyReplicas: {ready}, unavailableReplicas: {lacking}; the old ReplicaSet still serves"


def read_node(node: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], reading: Reading) -> list[Signal | Ignored]:
    """Return the signals of a node for each pod of ours on it: not ready, taken by the cloud, a broken device.

    Args:
        node: The v1 Node.
        pods: The pods that run on it.
        reading: What must be known from elsewhere.
    """
    metadata = part(node, "metadata")
    rows_ = [(said, at) for said, at in _troubles(node)]
    found: list[Signal | Ignored] = []
    for pod in pods:
        named = name(part(pod, "metadata").get("name"))
        for said, at in rows_:
            when = first_time(at)
            if _is_older(when, pod):
                continue
            found.append(
                signal(
                    pod_origin(pod, named),
                    reading,
                    key=_key(reading, "node", [text(metadata, "uid"), text(part(pod, "metadata"), "uid"), said], at),
                    source=Source.PLATFORM_LOG,
                    at=when,
                    said=said,
                    revision=pod_revision(pod),
                    instance=named,
                    severity="ERROR",
                    fields=facts(node=metadata.get("name")),
                )
            )
    return found


def is_node_trouble(body: Mapping[str, Any]) -> bool:
    """Whether a v1 Node or an event about one says something of its pods."""
    if "involvedObject" in body:
        return body.get("type") == "Warning"
    return any(True for _ in _troubles(body))


def _is_older(at: datetime | None, pod: Mapping[str, Any]) -> bool:
    """Whether something happened before the pod was made, so that it explains nothing of it."""
    made = first_time(part(pod, "metadata").get("creationTimestamp"))
    return at is not None and made is not None and at < made


def _troubles(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a node, and since when."""
    named = text(part(node, "metadata"), "name")
    for row in rows(part(node, "status"), "conditions"):
        if not isinstance(row, Mapping):
            continue
        kind, status = text(row, "type"), text(row, "status")
        words = ": ".join(filter(None, (text(row, "reason"), text(row, "message"))))
        if kind == "Ready" and status in {"False", "Unknown"}:
            yield f"NodeNotReady: node {named}: {words}", text(row, "lastTransitionTime")
        elif kind not in _PRESSURE | {"Ready"} and status == "True":
            yield f"{kind}: node {named}: {words}", text(row, "lastTransitionTime")
    for row in rows(part(node, "spec"), "taints"):
        if isinstance(row, Mapping) and text(row, "key") in TERMINATING:
            yield f"SpotTermination: node {named} is about to be taken: {row.get('key')}", text(row, "timeAdded")


def read_node_event(
    event: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], reading: Reading
) -> list[Signal | Ignored]:
    """Return the signals of an event about a node, such as an Xid, for each pod of ours on it.

    Args:
        event: The v1 Event; a normal one says nothing.
        pods: The pods that run on the node.
        reading: What must be known from elsewhere.
    """
    if event.get("type") != "Warning":
        return []
    at = first_time(event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    node = text(part(event, "involvedObject"), "name")
    said = ": ".join(filter(None, (text(event, "reason"), f"node {node}", text(event, "message"))))
    found: list[Signal | Ignored] = []
    for pod in pods:
        if _is_older(at, pod):
            continue
        named = name(part(pod, "metadata").get("name"))
        uids = [text(part(event, "metadata"), "uid"), event.get("count"), text(part(pod, "metadata"), "uid")]
        found.append(
            signal(
                pod_origin(pod, named),
                reading,
                key=_key(reading, "node_event", uids, at.isoformat() if at else ""),
                source=Source.PLATFORM_LOG,
                at=at,
                said=said,
                revision=pod_revision(pod),
                instance=named,
                severity="WARNING",
                fields=facts(node=node, reason=event.get("reason")),
            )
        )
    return found


def _key(reading: Reading, log: str, what: list[Any], at: str) -> str:
    return log_key(reading.run, log_name=log, insert_id=digest(what), timestamp=at)
