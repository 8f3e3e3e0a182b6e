"""The bus: messages that survive us, at least once and in no order."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from pydantic import AwareDatetime, Field

from agent.core.value import Value


class Topic(StrEnum):
    """The topics of the design."""

    LOG_EVENTS = "sre-log-events"
    ALERTS = "sre-alerts"
    INCIDENTS = "sre-incidents"
    DECISIONS = "sre-decisions"
    TICK = "sre-tick"
    DEAD_LETTER = "sre-dead-letter"


class Message(Value):
    """One message.

    Attributes:
        id: Derived from what it says, so that publishing it twice can be noticed; not the bus's own id.
        data: The body, JSON text of at most 1 MB.
        attributes: ``run``, ``kind``, ``incident``, ``trace``, ``traceparent``; small strings for filters and logs.
    """

    id: str
    topic: Topic
    data: str
    attributes: dict[str, str] = Field(default_factory=dict)


class Delivery(Value):
    """One arrival of a message.

    Attributes:
        message_id: The bus's own id of the message.
        subscription: Which subscription brought it.
        attempt: How often it has been delivered, from 1; 0 where the bus does not say.
    """

    topic: Topic | None
    message_id: str
    data: bytes
    attributes: dict[str, str] = Field(default_factory=dict)
    subscription: str = ""
    ordering_key: str = ""
    attempt: int = 0
    published_at: AwareDatetime | None = None


class Outcome(StrEnum):
    """What becomes of a delivery."""

    ACK = "ack"  # done, or nothing to do
    RETRY = "retry"  # another delivery can help
    QUARANTINED = "quarantined"  # it can never succeed; kept with its reason, acknowledged


class Bus(Protocol):
    """Publishes; a message is accepted when the call returns.

    Promises at least one delivery per subscription. Promises neither order nor a single delivery.
    """

    def publish(self, message: Message) -> str:
        """Return the bus's id of the accepted message.

        Raises:
            DependencyFailed: It was not accepted, or we do not know; publish it again.
        """
        ...


class Quarantine(Protocol):
    """Where bodies go that can never succeed, and where their failures are counted."""

    def failed(self, delivery: Delivery, reason: str) -> int:
        """Count a handled failure of this message and return how many there were."""
        ...

    def put(self, delivery: Delivery, reason: str) -> None:
        """Keep the message with its reason; putting it twice keeps it once.

        Raises:
            DependencyFailed: It could not be kept; do not acknowledge.
        """
        ...

    def rows(self, limit: int = 100) -> tuple[Mapping[str, str], ...]:
        """Return what is kept, newest first: id, topic, reason, at, data."""
        ...


class DeadLetter(Value):
    """A message that was given up: put aside by us, or delivered too often.

    Attributes:
        key: Names it among all of them.
        topic: Where it was published; None where that is no topic of ours.
        at: When it was given up, or published where nobody noted that.
        data: Its body, without secrets.
        kept_because: Why it cannot be delivered again from here; empty where it can.
    """

    key: str
    topic: Topic | None
    at: AwareDatetime
    reason: str
    data: str
    attributes: dict[str, str] = Field(default_factory=dict)
    kept_because: str = ""


class DeadLetters(Protocol):
    """Messages that were given up; every method raises DependencyFailed where the bus does not answer."""

    def letters(self, limit: int = 100) -> tuple[DeadLetter, ...]:
        """Return them, newest first."""
        ...

    def letter(self, key: str) -> DeadLetter | None:
        """Return one of them; None where it is not there any more."""
        ...

    def deliver_again(self, key: str) -> bool:
        """Deliver it once more to whoever receives its topic, as a new message; it is no dead letter any more.

        True for exactly one of all who ask; after a failure nothing was done, or everything.
        """
        ...
