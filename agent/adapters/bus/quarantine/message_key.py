"""A body that cannot succeed: under which name it is counted, and the row that is kept of it."""

import base64
import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from agent.ports.bus import Delivery

FAILURES_KEPT: Final = timedelta(
    days=7
)  # as long as Pub/Sub keeps a message by default; then its failures are forgotten


def key_of(delivery: Delivery) -> str:
    """Return the name: every delivery of one message has the same; without an id, the body decides."""
    name = delivery.message_id or hashlib.sha256(delivery.data).hexdigest()
    return f"{delivery.subscription or delivery.topic or ''}|{name}"


def row_of(delivery: Delivery, reason: str, *, redact: Callable[[str], str]) -> dict[str, str]:
    """Return what is kept of a message; ``encoding`` says how ``data`` is written: ``utf-8`` or ``base64``.

    Args:
        delivery: The message.
        reason: Why it cannot succeed.
        redact: Takes secrets out of a text before it is kept.
    """
    try:
        data, encoding = redact(delivery.data.decode("utf-8")), "utf-8"
    except UnicodeDecodeError:
        data, encoding = base64.b64encode(delivery.data).decode("ascii"), "base64"
    return {
        "id": delivery.message_id,
        "topic": delivery.topic or delivery.subscription,
        "reason": redact(reason),
        "data": data,
        "encoding": encoding,
        "attributes": redact(json.dumps(delivery.attributes)),
    }
