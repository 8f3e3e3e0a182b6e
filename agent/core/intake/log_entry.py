"""A Cloud Logging LogEntry, as a sink publishes it or an export writes it."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from agent.core.intake.ends import cloud_run_end, reports_sigterm, systemd_end
from agent.core.intake.json_fields import facts, first_time, name, names, part, text
from agent.core.intake.kubernetes import event_end, event_fields, event_text, event_waiting, replica_set, workload
from agent.core.intake.origin import (
    CANARY_LOG,
    CLOUD_RUN,
    Ignored,
    IgnoredBecause,
    Origin,
    Reading,
    platform_of,
    signal,
)
from agent.core.intake.signal import AskedBy, End, Signal, Source, Stop, log_key
from agent.core.value import digest
from agent.failures.text.entry_text import entry_lines

SHAPE = "log entry"

_SOURCES = {
    "run.googleapis.com/varlog/system": Source.PLATFORM_LOG,
    "run.googleapis.com/requests": Source.REQUEST_LOG,
    "cloudaudit.googleapis.com/system_event": Source.AUDIT_LOG,
    "cloudaudit.googleapis.com/activity": Source.AUDIT_LOG,
    "events": Source.PLATFORM_LOG,
}
_MESSAGE = ("message", "MESSAGE", "msg", "log", "text", "event")
_SYSTEM_LOGS = frozenset({"syslog", "systemd", "journald", "messages"})
_BATCH = "cloud_run_job"  # what it runs is to end
_NOWHERE = frozenset({"", "global", "generic_task", "generic_node", "project"})  # says nothing about the service
_TRACE = ("stack_trace", "exc_info", "exception", "traceback", "error")


def read_log_entry(entry: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of one entry; its text decides what it is about, never its severity.

    Raises:
        InputRejected: It names no service, or has no time.
    """
    log = _log_id(text(entry, "logName"))
    if log == CANARY_LOG:
        return [Ignored(because=IgnoredBecause.CANARY, what=log)]
    at = first_time(entry.get("timestamp"), entry.get("receiveTimestamp"))
    said, more = _payload(entry)
    origin = _origin(entry)
    if not said.strip():
        return [Ignored(because=IgnoredBecause.EMPTY, what=log[:80])]
    resource, labels = part(entry, "resource", "labels"), part(entry, "labels")
    pod = name(resource.get("pod_name"))
    source = _source(entry, log)
    reported = _end_or_stop(entry, log, origin, source, said)
    return [
        signal(
            origin,
            reading,
            key=_key(entry, reading.run, at),
            source=source,
            at=at,
            said=said,
            revision=name(resource.get("revision_name")) or (replica_set(pod) if pod else None),
            instance=_instance(resource, labels, pod),
            severity=text(entry, "severity"),
            fields=facts(log=log, container=labels.get("container_name") or resource.get("container_name")) | more,
            end=reported if isinstance(reported, End) else None,
            stop=reported if isinstance(reported, Stop) else None,
            waiting=event_waiting(payload) if "involvedObject" in (payload := part(entry, "jsonPayload")) else None,
        )
    ]


def _end_or_stop(entry: Mapping[str, Any], log: str, origin: Origin, source: Source, said: str) -> End | Stop | None:
    """Return the end or the stop that an entry tells; only whoever runs the server is believed an end."""
    payload = part(entry, "jsonPayload")
    if "involvedObject" in payload:
        return event_end(payload)
    if origin.platform == CLOUD_RUN and source is Source.PLATFORM_LOG:
        end = cloud_run_end(said)
        batch = text(part(entry, "resource"), "type") == _BATCH
        return None if batch and end is not None and end.exit_code == 0 else end
    if origin.platform == CLOUD_RUN and source is Source.APP_LOG and reports_sigterm(said):
        return Stop(by=AskedBy.SCALE_IN_OR_ROLLOUT)
    manager = log in _SYSTEM_LOGS or text(payload, "SYSLOG_IDENTIFIER") == "systemd"
    if manager and origin.platform != CLOUD_RUN:
        return systemd_end(said, own=origin.names)
    return None


def is_log_entry(body: Mapping[str, Any]) -> bool:
    """Whether a body is a LogEntry."""
    return (
        "logName" in body
        or "textPayload" in body
        or "jsonPayload" in body
        or "protoPayload" in body
        or ("httpRequest" in body and "resource" in body)
    )


@lru_cache(maxsize=256)
def _log_id(log_name: str) -> str:
    return unquote(log_name.rpartition("/logs/")[2])


def _key(entry: Mapping[str, Any], run: str, at: datetime | None) -> str:
    """Two exports of one entry write its time with more or fewer digits; the moment is the same."""
    insert_id = text(entry, "insertId") or digest(
        {key: said for key, said in entry.items() if key != "receiveTimestamp"}
    )
    return log_key(run, log_name=text(entry, "logName"), insert_id=insert_id, timestamp=at.isoformat() if at else "")


def _source(entry: Mapping[str, Any], log: str) -> Source:
    if found := _SOURCES.get(log):
        return found
    if log.startswith("cloudaudit.googleapis.com/") or "protoPayload" in entry:
        return Source.AUDIT_LOG
    if "httpRequest" in entry and "jsonPayload" not in entry:
        return Source.REQUEST_LOG
    return Source.APP_LOG


def _origin(entry: Mapping[str, Any]) -> Origin:
    resource, mine = part(entry, "resource", "labels"), part(entry, "labels")
    kind = text(part(entry, "resource"), "type")
    return Origin(
        shape=SHAPE,
        platform=platform_of(kind),
        names=_names(kind, resource, mine),
        project=text(resource, "project_id"),
        location=text(resource, "location", "zone"),
        namespace=text(resource, "namespace_name"),
        labels=resource,
        marks=mine,
    )


def _names(kind: str, resource: Mapping[str, Any], mine: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the service; a resource that is none (a node, a bucket) by itself, so that it is simply not watched."""
    if service := name(resource.get("service_name")):
        return (service,)
    pod = name(resource.get("pod_name"))
    return names(
        resource.get("worker_pool_name"),
        resource.get("job_name"),
        pod and workload(pod),
        mine.get("k8s-pod/app"),
        mine.get("k8s-pod/app_kubernetes_io/name"),
        resource.get("node_id"),
        resource.get("container_name"),
        mine.get("compute.googleapis.com/resource_name"),
        resource.get("instance_id"),
        resource.get("node_name"),
        None if kind in _NOWHERE else kind,
    )


def _instance(resource: Mapping[str, Any], labels: Mapping[str, Any], pod: str | None) -> str | None:
    node, worker = name(resource.get("node_id")), name(resource.get("worker_id"))
    if node:
        return f"{node}/{worker}"[:253] if worker else node
    return name(labels.get("instanceId")) or pod or name(resource.get("instance_id"))


def _payload(entry: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return what the entry says, and the small facts beside it."""
    request = part(entry, "httpRequest")
    fields = _request_fields(request)
    if said := text(entry, "textPayload"):
        return said, fields
    if payload := part(entry, "jsonPayload"):
        said, more = _json_payload(payload)
        return said, fields | more
    if proto := part(entry, "protoPayload"):
        said, more = _audit(proto)
        return said, fields | more
    if request:
        return f"HTTP {fields.get('method', '?')} {fields.get('path', '?')} status {fields.get('status', '?')}", fields
    return "", fields


def _json_payload(payload: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    if "involvedObject" in payload:
        return event_text(payload), event_fields(payload)
    traces = [text(payload, key) for key in _TRACE]
    words = [word for word in (text(payload, *_MESSAGE), *traces) if word]
    if not words:
        words = entry_lines({"jsonPayload": payload})
    return "\n".join(words), facts(logger=text(payload, "logger", "name"), reason=payload.get("reason"))


def _audit(proto: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Say how a call on the platform ended; request and response bodies stay out, they hold whole configurations."""
    status = part(proto, "status")
    method, resource = text(proto, "methodName"), text(proto, "resourceName")
    said = text(status, "message") or f"{method or 'a call'} on {resource or 'an unnamed resource'}" + (
        f" failed with code {status['code']}" if status.get("code") else ""
    )
    who = part(proto, "authenticationInfo")
    return said, facts(method=method, resource=resource, code=status.get("code"), principal=who.get("principalEmail"))


def _request_fields(request: Mapping[str, Any]) -> dict[str, str]:
    if not request:
        return {}
    return facts(
        status=request.get("status"),
        method=request.get("requestMethod"),
        path=_path(text(request, "requestUrl")),
        latency=request.get("latency"),
        agent=request.get("userAgent"),
    )


def _path(url: str) -> str:
    """Return a URL's path; its query may hold secrets."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""
