"""Under which name a body that cannot succeed is counted and kept."""

import base64
import hashlib
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


def topic_of(delivery: Delivery) -> str:
    """Return the topic as shown, or the subscription where the envelope does not name one."""
    return delivery.topic or delivery.subscription


def as_text(data: bytes) -> tuple[str, str]:
    """Return a body as text, and how it is written: ``utf-8`` or ``base64``."""
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), "base64"
