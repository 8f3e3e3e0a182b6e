"""The bus in memory: for tests, simulations, and replays that keep nothing."""

import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.adapters.bus.pulling import LeasedDelivery, Subscription, by_name, checked, dead_letter_attributes
from agent.adapters.bus.wake_up import WakeUp
from agent.ports.bus import Delivery, Message, Topic
from agent.ports.clock import Clock


@dataclass
class _Waiting:
    """A message on its way to one subscription."""

    number: int
    topic: Topic
    data: str
    attributes: dict[str, str] = field(repr=False)
    published_at: datetime
    visible_at: datetime
    attempt: int = 0


class MemoryBus:
    """Keeps the promises of :class:`agent.ports.bus.Bus` until the process ends; ids are remembered as long.

    Args:
        clock: Tells when deliveries are due.
        subscriptions: Who hears which topic.
    """

    def __init__(self, clock: Clock, subscriptions: Iterable[Subscription]) -> None:
        self._clock = clock
        self._subscriptions = by_name(subscriptions)
        self._lock = threading.Lock()
        self._wake_up = WakeUp()
        self._numbers = itertools.count(1)
        self._seen: dict[str, int] = {}
        self._queues: dict[str, dict[int, _Waiting]] = {name: {} for name in self._subscriptions}

    def publish(self, message: Message) -> str:
        """Keep a message; the same id again returns the first one's number."""
        checked(message)
        now = self._clock.now()
        with self._lock:
            number = self._seen.get(message.id)
            if number is None:
                number = self._add(message.topic, message.data, message.attributes, now)
                self._seen[message.id] = number
        self._wake_up.notify()
        return str(number)

    def pull(self, subscription: str, limit: int = 1) -> tuple[LeasedDelivery, ...]:
        """Lease deliveries that are due; what was delivered too often goes to the dead letters instead."""
        who = self._subscriptions[subscription]
        now = self._clock.now()
        arrivals = []
        with self._lock:
            queue = self._queues[subscription]
            due = sorted((w for w in queue.values() if w.visible_at <= now), key=lambda w: (w.visible_at, w.number))
            for waiting in due[:limit]:
                if who.deliveries is not None and waiting.attempt >= who.deliveries:
                    del queue[waiting.number]
                    own, attempts, at = waiting.attributes, waiting.attempt, waiting.published_at
                    named = dead_letter_attributes(own, who, attempts=attempts, published_at=at)
                    self._add(Topic.DEAD_LETTER, waiting.data, named, now)
                    continue
                waiting.attempt += 1
                waiting.visible_at = now + timedelta(seconds=who.lease_s)
                arrivals.append(_arrival(who, waiting))
        return tuple(arrivals)

    def ack(self, arrival: LeasedDelivery) -> bool:
        """Take the message from its subscription; see :class:`agent.adapters.bus.pulling.PullBus`."""
        with self._lock:
            waiting = self._of(arrival)
            if waiting is not None:
                del self._queues[arrival.delivery.subscription][waiting.number]
        return waiting is not None

    def retry(self, arrival: LeasedDelivery, *, delay_s: float | None = None) -> bool:
        """Give it back after a wait; see :class:`agent.adapters.bus.pulling.PullBus`."""
        who = self._subscriptions[arrival.delivery.subscription]
        wait_s = who.backoff_s(arrival.delivery.attempt) if delay_s is None else delay_s
        ours = self._show(arrival, in_s=wait_s)
        self._wake_up.notify()
        return ours

    def extend(self, arrival: LeasedDelivery) -> bool:
        """Begin its lease anew; see :class:`agent.adapters.bus.pulling.PullBus`."""
        return self._show(arrival, in_s=self._subscriptions[arrival.delivery.subscription].lease_s)

    def wait(self, timeout_s: float) -> None:
        """Return when something happened, or after ``timeout_s``."""
        self._wake_up.wait(timeout_s)

    def waiting(self) -> dict[str, int]:
        """Return how many deliveries are not acknowledged, by subscription."""
        with self._lock:
            return {name: len(queue) for name, queue in self._queues.items()}

    def oldest_s(self) -> float:
        """Return the age of the oldest message that waits; see :class:`agent.adapters.bus.pulling.PullBus`."""
        now = self._clock.now()
        with self._lock:
            every = (w for queue in self._queues.values() for w in queue.values())
            waiting = [w.published_at for w in every if w.topic is not Topic.DEAD_LETTER]
        return max((now - min(waiting)).total_seconds(), 0.0) if waiting else 0.0

    def _show(self, arrival: LeasedDelivery, *, in_s: float) -> bool:
        at = self._clock.now() + timedelta(seconds=in_s)
        with self._lock:
            waiting = self._of(arrival)
            if waiting is not None:
                waiting.visible_at = at
        return waiting is not None

    def _add(self, topic: Topic, data: str, attributes: dict[str, str], now: datetime) -> int:
        number = next(self._numbers)
        for name, subscription in self._subscriptions.items():
            if subscription.topic is topic:
                self._queues[name][number] = _Waiting(number, topic, data, dict(attributes), now, now)
        return number

    def _of(self, arrival: LeasedDelivery) -> _Waiting | None:
        waiting = self._queues[arrival.delivery.subscription].get(int(arrival.delivery.message_id))
        return waiting if waiting is not None and waiting.attempt == arrival.delivery.attempt else None


def _arrival(who: Subscription, waiting: _Waiting) -> LeasedDelivery:
    return LeasedDelivery(
        delivery=Delivery(
            topic=waiting.topic,
            message_id=str(waiting.number),
            data=waiting.data.encode(),
            attributes=dict(waiting.attributes),
            subscription=who.name,
            attempt=waiting.attempt,
            published_at=waiting.published_at,
        ),
        handle=f"{waiting.number}.{waiting.attempt}",
    )
