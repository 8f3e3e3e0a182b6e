"""A body from outside becomes signals, or a refusal that says what is wrong and who can fix it."""

from collections.abc import Callable, Mapping
from typing import Any

from agent.core.intake.alertmanager import read_alertmanager
from agent.core.intake.azure import SCHEMA, is_container_apps_row, read_azure_alert, read_container_apps_row
from agent.core.intake.datadog import is_datadog, read_datadog
from agent.core.intake.eventbridge import read_eventbridge
from agent.core.intake.grafana import is_grafana, read_grafana
from agent.core.intake.json_fields import is_envelope, shown, text
from agent.core.intake.kubernetes import read_event, read_pod
from agent.core.intake.log_entry import is_log_entry, read_log_entry
from agent.core.intake.monitoring import read_monitoring
from agent.core.intake.origin import Ignored, Reading
from agent.core.intake.signal import Signal
from agent.core.intake.tpu_queued_resource import is_queued_resource, read_queued_resource
from agent.core.value import Value
from agent.errors import InputRejected
from agent.strict_json import read_object

BODY_LIMIT = 1_048_576  # bytes; a log entry has at most 256 KB, an audit entry 512 KB

Reader = Callable[[Mapping[str, Any], Reading], list[Signal | Ignored]]

SHAPES: tuple[tuple[str, Callable[[Mapping[str, Any]], bool], Reader], ...] = (
    ("log_entry", is_log_entry, read_log_entry),
    ("monitoring", lambda body: isinstance(body.get("incident"), Mapping), read_monitoring),
    ("grafana", is_grafana, read_grafana),
    ("alertmanager", lambda body: "alerts" in body and ("groupKey" in body or "receiver" in body), read_alertmanager),
    ("datadog", is_datadog, read_datadog),
    ("azure_alert", lambda body: body.get("schemaId") == SCHEMA, read_azure_alert),
    ("container_apps", is_container_apps_row, read_container_apps_row),
    ("eventbridge", lambda body: "detail-type" in body, read_eventbridge),
    ("tpu", is_queued_resource, read_queued_resource),
    ("kubernetes_event", lambda body: "involvedObject" in body, read_event),
    (
        "pod",
        lambda body: body.get("kind") == "Pod" or "containerStatuses" in body or "initContainerStatuses" in body,
        read_pod,
    ),
)
"""The accepted shapes by name, asked in this order."""


class BodyResult(Value):
    """What became of a body.

    Attributes:
        shape: The shape's name in ``SHAPES``.
        signals: What it says about watched services, in the order of the body.
        ignored: What became no signal, and why; a body with nothing else is acknowledged, never quarantined.
    """

    shape: str
    signals: tuple[Signal, ...] = ()
    ignored: tuple[Ignored, ...] = ()


def signals_from(body: bytes, reading: Reading) -> BodyResult:
    """Return the signals of one body: a log entry, an alert of any kind, a platform's status.

    Args:
        body: JSON as it arrived, at most ``BODY_LIMIT`` bytes, without its Pub/Sub envelope.
        reading: What must be known from elsewhere.

    Raises:
        InputRejected: It can never become a signal: not JSON, an unknown shape, or one that is no event.
    """
    return signals_of(read_object(body, what="body", limit=BODY_LIMIT), reading)


def signals_of(body: Mapping[str, Any], reading: Reading) -> BodyResult:
    """Return the signals of a body that was read with :mod:`agent.strict_json` already.

    Raises:
        InputRejected: As in :func:`signals_from`.
    """
    name, reader = shape_of(body)
    found = reader(body, reading)
    return BodyResult(
        shape=name,
        signals=tuple(item for item in found if isinstance(item, Signal)),
        ignored=tuple(item for item in found if isinstance(item, Ignored)),
    )


def shape_of(body: Mapping[str, Any]) -> tuple[str, Reader]:
    """Return the name and the reader of a body's shape.

    Raises:
        InputRejected: It is known to be no event, or not known at all.
    """
    for name, fits, reader in SHAPES:
        if fits(body):
            return name, reader
    refuse_known(body)
    raise InputRejected(
        "the body became no signal",
        why=f"its shape is unknown, its keys are {shown(sorted(body)[:8])}",
        hint=f"send one of: {', '.join(name for name, _, _ in SHAPES)}",
    )


def refuse_known(body: Mapping[str, Any]) -> None:
    """Refuse a body that we know and that is no event.

    Raises:
        InputRejected: Says what it is and where it belongs.
    """
    for what, fits, hint in _KNOWN:
        if fits(body):
            raise InputRejected("the body became no signal", why=f"it is {what}", hint=hint)


def _is_run_service(body: Mapping[str, Any]) -> bool:
    return "/services/" in text(body, "name") and ("template" in body or "terminalCondition" in body)


def _is_run_operation(body: Mapping[str, Any]) -> bool:
    return "/operations/" in text(body, "name") and ("done" in body or "metadata" in body)


def _is_recorded_request(body: Mapping[str, Any]) -> bool:
    return "method" in body and "headers" in body and ("body" in body or "raw_body" in body)


_REPLAY_LOGS = "its failure reaches us as an audit log entry: send or replay that"
_KNOWN = (
    (
        "a Pub/Sub envelope, not its message",
        is_envelope,
        "hand it to the Pub/Sub entry, or to ingest as cloudevents, which unwrap it",
    ),
    ("a recorded HTTP request", _is_recorded_request, "send its body with its headers to the entry it was made for"),
    ("a Cloud Run service as its API shows it", _is_run_service, _REPLAY_LOGS),
    ("a Cloud Run operation as its API shows it", _is_run_operation, _REPLAY_LOGS),
    (
        "a request to change a Cloud Run service",
        lambda body: "updateMask" in body and "service" in body,
        "nothing of this kind is taken from outside; changes go through a plan",
    ),
    (
        "the answer of an SSM command",
        lambda body: "CommandId" in body and "InstanceId" in body,
        "only whoever ran the command reads it; send the server's log instead",
    ),
    (
        "a Slack interaction",
        lambda body: text(body, "type") in {"block_actions", "view_submission", "url_verification"},
        "let Slack post it to the decide function, which checks its signature",
    ),
    ("a Slack message that we send", lambda body: "channel" in body and "blocks" in body, "it goes out, never in"),
    (
        "a PagerDuty event that we send",
        lambda body: "routing_key" in body and "event_action" in body,
        "it goes out, never in",
    ),
    (
        "Datadog's default payload, which names neither state nor service",
        lambda body: "event_type" in body and "last_updated" in body and "org" in body,
        "set the payload of docs/intake.md in the webhook's settings",
    ),
    (
        "an Opsgenie alert that we send",
        lambda body: "message" in body and ("responders" in body or "alias" in body) and "priority" in body,
        "it goes out, never in",
    ),
)
