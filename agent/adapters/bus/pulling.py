"""What a bus offers to whoever pulls from it: arrivals, and what becomes of them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Protocol

from pydantic import Field

from agent.core.value import Value
from agent.errors import InputRejected
from agent.ports.bus import Delivery, Message, Topic

MESSAGE_BYTES: Final = 1_000_000


class Subscription(Value):
    """Who hears a topic, and how patient the bus is with it.

    The defaults are the service's own in the cloud: retry 10 to 600 s, 20 deliveries.

    Attributes:
        lease_s: How long a delivery is ours before the next worker gets it; a worker that lives extends it.
        backoff_min_s: Wait before the second delivery; it doubles with each.
        compression: Divides the waits (not the lease) of a rehearsal.
        deliveries: After so many the message goes to the dead letters; None for ever.
    """

    name: str = Field(min_length=1)
    topic: Topic
    lease_s: float = Field(default=60, gt=0)
    backoff_min_s: float = Field(default=10, gt=0)
    backoff_max_s: float = Field(default=600, gt=0)
    compression: float = Field(default=1, ge=1)
    deliveries: int | None = Field(default=20, ge=1)

    def backoff_s(self, attempt: int) -> float:
        """Return the wait after delivery number ``attempt`` (from 1) has failed."""
        doubled = self.backoff_min_s * 2.0 ** float(min(max(attempt - 1, 0), 30))
        return float(min(doubled, self.backoff_max_s)) / self.compression


def default_subscriptions(*, compression: float = 1) -> tuple[Subscription, ...]:
    """Return one subscription for each topic; dead letters are kept until somebody takes them."""
    return tuple(
        Subscription(
            name=f"{topic}-sub",
            topic=topic,
            compression=compression,
            deliveries=None if topic is Topic.DEAD_LETTER else 20,
        )
        for topic in Topic
    )


def by_name(subscriptions: Iterable[Subscription]) -> dict[str, Subscription]:
    """Return the subscriptions by name.

    Raises:
        AssertionError: Two share a name; a bug of whoever puts the service together.
    """
    named: dict[str, Subscription] = {}
    for subscription in subscriptions:
        assert subscription.name not in named, f"two subscriptions are named {subscription.name!r}"
        named[subscription.name] = subscription
    return named


class LeasedDelivery(Value):
    """A delivery that is ours until its lease is over.

    Attributes:
        handle: Names this delivery of this message; of no use once the message was delivered again.
    """

    delivery: Delivery
    handle: str


class PullBus(Protocol):
    """A bus that can be pulled from; every method raises DependencyFailed when it does not answer."""

    def publish(self, message: Message) -> str:
        """Accept a message; see :class:`agent.ports.bus.Bus`."""
        ...

    def pull(self, subscription: str, limit: int = 1) -> tuple[LeasedDelivery, ...]:
        """Lease up to ``limit`` deliveries that are due; returns at once, empty where there are none."""
        ...

    def ack(self, arrival: LeasedDelivery) -> bool:
        """Take the message from its subscription; False where the lease was over and another delivery counts."""
        ...

    def retry(self, arrival: LeasedDelivery, *, delay_s: float | None = None) -> bool:
        """Give it back, to be delivered after ``delay_s`` or the subscription's own wait; False as for ``ack``."""
        ...

    def extend(self, arrival: LeasedDelivery) -> bool:
        """Begin its lease anew, because the work on it goes on; False as for ``ack``."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when something was published or given back in this process, or after ``timeout_s``."""
        ...

    def waiting(self) -> dict[str, int]:
        """Return how many deliveries are not acknowledged, by subscription."""
        ...

    def oldest_s(self) -> float:
        """Return the age of the oldest message that somebody has not acknowledged, seconds; 0 where none waits.

        Dead letters do not count: they are kept until somebody takes them.
        """
        ...


def checked(message: Message) -> Message:
    """Return the message if a bus can carry it.

    Raises:
        InputRejected: It is larger than 1 MB.
    """
    size = len(message.data.encode("utf-8"))
    if size > MESSAGE_BYTES:
        raise InputRejected(
            f"message {message.id!r} was not published",
            why=f"its body has {size} bytes, the limit is {MESSAGE_BYTES}",
            hint="send less text in one message",
        )
    return message


def dead_letter_attributes(
    attributes: dict[str, str], subscription: Subscription, *, attempts: int, published_at: datetime
) -> dict[str, str]:
    """Return the attributes of a dead letter: the message's own, and where it came from.

    The names are Pub/Sub's, so that one reader serves both; a recorded push of a dead letter shows them.
    """
    return attributes | {
        "CloudPubSubDeadLetterSourceDeliveryCount": str(attempts),
        "CloudPubSubDeadLetterSourceSubscription": subscription.name,
        "CloudPubSubDeadLetterSourceTopicPublishTime": published_at.isoformat(timespec="milliseconds"),
    }
