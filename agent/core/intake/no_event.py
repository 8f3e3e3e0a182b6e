"""Bodies that are no events for us, each with who reads them instead: answers of APIs, and what we send ourselves."""

from collections.abc import Mapping
from typing import Any

from agent.core.intake.wire import part, text
from agent.errors import InputRejected


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


def _is_envelope(body: Mapping[str, Any]) -> bool:
    return "specversion" in body or bool(part(body, "message") and "subscription" in body)


def _is_recorded_request(body: Mapping[str, Any]) -> bool:
    return "method" in body and "headers" in body and ("body" in body or "raw_body" in body)


_REPLAY_LOGS = "its failure reaches us as an audit log entry: send or replay that"
_KNOWN = (
    ("a Pub/Sub envelope, not its message", _is_envelope, "hand it to the Pub/Sub entry, which unwraps it"),
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
        "an Opsgenie alert that we send",
        lambda body: "message" in body and ("responders" in body or "alias" in body) and "priority" in body,
        "it goes out, never in",
    ),
)
