"""Kubernetes: pod names, events and pod statuses (facts: v1 Event, v1 PodStatus)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent.core.intake.origin import KUBERNETES, Ignored, Origin, Reading, signal
from agent.core.intake.wire import facts, first_time, missing, name, names, part, rows, text
from agent.core.signal import Signal, Source, log_key
from agent.core.value import digest

_SAFE = "bcdfghjklmnpqrstvwxz2456789"  # the alphabet of generated suffixes: k8s.io/apimachinery util/rand
_DEPLOYED = re.compile(rf"^(?P<workload>.+)-(?P<hash>[{_SAFE}]{{6,10}})-[{_SAFE}]{{5}}$")
_ORDINAL = re.compile(r"^(?P<workload>.+)-\d{1,5}$")
_POD_IN_WORDS = re.compile(r"\bpod=([a-z0-9][a-z0-9.-]{0,252})_([a-z0-9-]{1,63})\(")


def workload(pod: str) -> str:
    """Return the deployment or stateful set that a pod's name says it belongs to; the name itself otherwise."""
    found = _DEPLOYED.match(pod) or _ORDINAL.match(pod)
    return found["workload"] if found else pod


def replica_set(pod: str) -> str | None:
    """Return the replica set of a deployment's pod: what a revision is on Kubernetes."""
    found = _DEPLOYED.match(pod)
    return f"{found['workload']}-{found['hash']}" if found else None


def read_event(event: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of a v1 Event as an exporter posts it, outside a log entry."""
    told = part(event, "involvedObject")
    pod = name(told.get("name"))
    origin = Origin(
        shape="Kubernetes event",
        platform=KUBERNETES,
        names=names(pod and workload(pod)),
        namespace=text(told, "namespace"),
    )
    at = first_time(event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    said = event_text(event)
    if not said:
        raise missing(origin.shape, "message")
    uid = text(part(event, "metadata"), "uid") or digest(dict(event))
    return [
        signal(
            origin,
            reading,
            key=log_key(
                reading.run,
                log_name="events",
                insert_id=f"{uid}/{event.get('count')}",
                timestamp=at.isoformat() if at else "",
            ),
            source=Source.PLATFORM_LOG,
            at=at,
            said=said,
            revision=pod and replica_set(pod),
            instance=pod,
            severity="WARNING" if event.get("type") == "Warning" else "INFO",
            fields=event_fields(event),
        )
    ]


def event_text(event: Mapping[str, Any]) -> str:
    """Return reason and message on one line, so that a phrase that spans both is found."""
    return ": ".join(word for word in (text(event, "reason"), text(event, "message")) if word)


def event_fields(event: Mapping[str, Any]) -> dict[str, str]:
    """Return the small facts of an event."""
    return facts(
        reason=event.get("reason"),
        count=event.get("count"),
        object=text(part(event, "involvedObject"), "fieldPath") or text(part(event, "involvedObject"), "kind"),
        host=part(event, "source").get("host"),
    )


def read_pod(pod: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of a pod, whole or its status alone; a killed container is no event, it stands only here."""
    status = part(pod, "status") or pod
    containers = [row for key in ("initContainerStatuses", "containerStatuses") for row in rows(status, key)]
    containers = [row for row in containers if isinstance(row, Mapping)]
    if not containers:
        raise missing("pod status", "containerStatuses")
    says = [line for row in containers for line in _container_lines(row)]
    named = name(part(pod, "metadata").get("name")) or _pod_in(says)
    origin = Origin(
        shape="pod status",
        platform=KUBERNETES,
        names=names(named and workload(named)),
        namespace=text(part(pod, "metadata"), "namespace"),
    )
    at = max(filter(None, (_changed_at(row) for row in containers)), default=None)
    restarts = sum(row["restartCount"] for row in containers if isinstance(row.get("restartCount"), int))
    said = "\n".join(says) or f"pod {text(status, 'phase') or 'without phase'}"
    return [
        signal(
            origin,
            reading,
            key=log_key(
                reading.run,
                log_name="pod_status",
                insert_id=digest([named, said, restarts]),
                timestamp=at.isoformat() if at else "",
            ),
            source=Source.PLATFORM_LOG,
            at=at,
            said=said,
            revision=named and replica_set(named),
            instance=named,
            fields=facts(phase=status.get("phase"), restarts=restarts, container=text(containers[0], "name")),
        )
    ]


def _container_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Say what a container's present and last state are, the end before the waiting that follows it."""
    who = text(row, "name")
    for state in (part(row, "lastState"), part(row, "state")):
        ended, waits = part(state, "terminated"), part(state, "waiting")
        if ended:
            code, reason = ended.get("exitCode"), text(ended, "reason") or "Terminated"
            words = f": {message}" if (message := text(ended, "message")) else ""
            yield f"{reason}: container {who} terminated with exit code {code if isinstance(code, int) else '?'}{words}"
        if waits:
            yield ": ".join(filter(None, (text(waits, "reason") or "Waiting", text(waits, "message"))))
        if part(state, "running"):
            yield f"Running: container {who} is {'ready' if row.get('ready') is True else 'not ready'}"


def _changed_at(row: Mapping[str, Any]) -> Any:
    states = (part(row, "state"), part(row, "lastState"))
    return first_time(
        *(part(state, "terminated").get("finishedAt") for state in states),
        *(part(state, "running").get("startedAt") for state in states),
    )


def _pod_in(lines: list[str]) -> str | None:
    return next((found[1] for line in lines if (found := _POD_IN_WORDS.search(line))), None)
