"""Pub/Sub's push requests become deliveries, in every form that reaches an HTTP function (facts 1.1, 1.2)."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.core.intake.json_fields import shown, text, time_of
from agent.errors import InputRejected
from agent.ports.bus import Delivery, Topic
from agent.strict_json import read_object

PUSH_LIMIT = 2_097_152  # bytes of a request: 1 MB of data as base64, and 100 attributes of 1,280 bytes
DATA_LIMIT = 1_048_576  # bytes of a message, as in agent.ports.bus
HEADER_LIMIT = 4096  # characters of one header
EVENT_TYPE = "google.cloud.pubsub.topic.v1.messagePublished"

_HINT = "publish one message per request, or look at the push settings of the subscription"
_META = "x-goog-pubsub-"
# Unwrapped, an attribute is a header among others.
_OUR_ATTRIBUTES = ("run", "kind", "incident", "trace", "traceparent")


def delivery_from(headers: Mapping[str, str], body: bytes, *, topic: Topic | None = None) -> Delivery:
    """Return the message of a push request.

    Read are: binary and structured CloudEvents, the wrapped push body, and the unwrapped push with metadata
    headers; with and without data; camelCase before snake_case where both stand there.

    Raises:
        InputRejected: None of these, broken base64, an attribute that is no text, too large.
    """
    lower = _lower(headers)
    if f"{_META}message-id" in lower and "ce-type" not in lower:
        return _unwrapped(lower, body, topic)
    if len(body) > PUSH_LIMIT:
        raise _refusal(f"it has {len(body)} bytes, at most {PUSH_LIMIT} are taken")
    if "ce-type" in lower:
        return _binary(lower, body, topic)
    if lower.get("content-type", "").lower().startswith("application/cloudevents-batch"):
        raise _refusal("it is a batch of CloudEvents")
    return delivery_of(read_object(body, what="push request", limit=None, hint=_HINT), topic=topic)


def delivery_of(envelope: Mapping[str, Any], *, topic: Topic | None = None) -> Delivery:
    """Return the message of a structured CloudEvent or a wrapped push body that was parsed already.

    Raises:
        InputRejected: It is neither, or broken inside.
    """
    if "specversion" in envelope:
        _check_type(envelope.get("type"))
        data = envelope.get("data")
        if "data_base64" in envelope:
            raw = _decoded(envelope["data_base64"])
            data = read_object(raw, what="CloudEvent's data", limit=PUSH_LIMIT, hint=_HINT)
        return _wrapped(
            data if isinstance(data, Mapping) else _none_is_empty(data),
            topic or topic_in(envelope.get("source")),
            event_id=text(envelope, "id"),
            event_time=envelope.get("time"),
        )
    if "message" not in envelope:
        raise _refusal("it has no message")
    return _wrapped(envelope, topic)


def topic_in(source: object) -> Topic | None:
    """Return our topic at the end of a resource path such as ``//pubsub.googleapis.com/projects/P/topics/T``."""
    last = source.rpartition("/")[2] if isinstance(source, str) else ""
    return Topic(last) if last in set(Topic) else None


def _binary(headers: Mapping[str, str], body: bytes, topic: Topic | None) -> Delivery:
    _check_type(headers["ce-type"])
    envelope = read_object(body, what="push request", limit=None, hint=_HINT) if body.strip() else {}
    return _wrapped(
        envelope,
        topic or topic_in(headers.get("ce-source")),
        event_id=headers.get("ce-id", ""),
        event_time=headers.get("ce-time"),
    )


def _wrapped(
    envelope: Mapping[str, Any], topic: Topic | None, *, event_id: str = "", event_time: object = None
) -> Delivery:
    message = envelope.get("message", {})
    if not isinstance(message, Mapping):
        raise _refusal(f"its message is {shown(message)}")
    data = _decoded(message.get("data"))
    attempt = envelope.get("deliveryAttempt", envelope.get("delivery_attempt"))
    return _delivery(
        topic=topic,
        message_id=text(message, "messageId", "message_id") or event_id,
        data=data,
        attributes=_attributes(message.get("attributes")),
        subscription=text(envelope, "subscription"),
        ordering_key=text(message, "orderingKey", "ordering_key"),
        attempt=attempt,
        published_at=time_of(text(message, "publishTime", "publish_time")) or time_of(event_time),
    )


def _unwrapped(headers: Mapping[str, str], body: bytes, topic: Topic | None) -> Delivery:
    attempt = headers.get(f"{_META}delivery-attempt", "")
    return _delivery(
        topic=topic,
        message_id=headers[f"{_META}message-id"],
        data=body,
        attributes={key: headers[key] for key in _OUR_ATTRIBUTES if key in headers},
        subscription=headers.get(f"{_META}subscription-name", ""),
        ordering_key=headers.get(f"{_META}ordering-key", ""),
        attempt=int(attempt) if attempt.isascii() and attempt.isdigit() and len(attempt) < 10 else 0,
        published_at=time_of(headers.get(f"{_META}publish-time")),
    )


def _delivery(
    *,
    topic: Topic | None,
    message_id: str,
    data: bytes,
    attributes: dict[str, str],
    subscription: str,
    ordering_key: str,
    attempt: object,
    published_at: datetime | None,
) -> Delivery:
    if len(data) > DATA_LIMIT:
        raise _refusal(f"its message has {len(data)} bytes, at most {DATA_LIMIT} are taken")
    return Delivery(
        topic=topic,
        message_id=message_id or _digest_id(data),
        data=data,
        attributes=attributes,
        subscription=subscription,
        ordering_key=ordering_key,
        attempt=attempt if isinstance(attempt, int) and 0 < attempt < 2**31 else 0,
        published_at=published_at,
    )


def unreadable(headers: Mapping[str, str], body: bytes, *, topic: Topic | None = None) -> Delivery:
    """Return what can be kept of a request that is no delivery."""
    lower = _lower(headers)
    return Delivery(
        topic=topic,
        message_id=lower.get("ce-id") or lower.get(f"{_META}message-id") or _digest_id(body),
        data=body[:DATA_LIMIT],
        subscription=lower.get(f"{_META}subscription-name", ""),
    )


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by lower-case name; what a server decoded badly is replaced, and no value is endless."""
    return {
        key.lower(): value[:HEADER_LIMIT].encode("utf-8", "replace").decode("utf-8", "replace")
        for key, value in headers.items()
    }


def _attributes(found: object) -> dict[str, str]:
    """Refuse what is no text: a damaged ``run`` must not turn a replay into the live run."""
    if found is None:
        return {}
    if not isinstance(found, Mapping) or not all(isinstance(value, str) for value in found.values()):
        raise _refusal("its attributes are not all text")
    return dict(found)


def _decoded(data: object) -> bytes:
    if data is None or data == "":
        return b""
    if not isinstance(data, str):
        raise _refusal(f"its data are {shown(data)}, not base64 text")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refusal("its data are not base64") from error


def _none_is_empty(data: object) -> Mapping[str, Any]:
    if data is None:
        return {}
    raise _refusal(f"the CloudEvent's data are {shown(data)}")


def _check_type(said: object) -> None:
    if said != EVENT_TYPE:
        raise _refusal(f"the CloudEvent's type is {shown(said)}, not {EVENT_TYPE!r}")


def _digest_id(data: bytes) -> str:
    return f"sha256-{hashlib.sha256(data).hexdigest()[:32]}"


def _refusal(why: str) -> InputRejected:
    return InputRejected("the push request holds no message", why=why, hint=_HINT)
