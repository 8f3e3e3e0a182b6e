"""The bus in the same SQLite file as the incidents: durable, redelivering, without an account."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from agent.adapters.bus.pulling import LeasedDelivery, Subscription, by_name, checked, dead_letter_attributes
from agent.adapters.store.named_sql import queries
from agent.adapters.store.row_json import from_us, to_us
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.ports.bus import Delivery, Message, Topic
from agent.ports.clock import Clock

SQL: Final = queries("bus")
RETENTION: Final = timedelta(hours=24)
FROM_OUTSIDE: Final = frozenset({Topic.LOG_EVENTS, Topic.ALERTS})
_PRUNED_AT_ONCE: Final = 8  # old ids forgotten by each publishing, so that nobody has to tidy up


class _WakeUp:
    """Wakes the threads of this process that wait for messages; other processes find them by polling.

    A notification is never missed: a thread that looked before it came does not wait.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self._seen = threading.local()

    def notify(self) -> None:
        """Wake everybody who waits."""
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Return when somebody notified since this thread last waited, or after ``timeout_s``."""
        with self._condition:
            before = getattr(self._seen, "count", 0)
            if self._count == before:
                self._condition.wait(timeout_s)
            self._seen.count = self._count


class EmbeddedBus:
    """Keeps the promises of :class:`agent.ports.bus.Bus` for several threads and processes on one machine.

    A message is kept once while its id is remembered, and goes to each subscription of its topic until that
    acknowledges it. Deliveries come oldest first, but nothing depends on it.

    Args:
        database: A state database.
        clock: Tells when deliveries are due; one that steps back delays them by the step.
        subscriptions: Who hears which topic; the file remembers them.
        retention: How long ids are remembered.
        hide: Takes secrets out of a body from outside before it is kept; the id that tells it from others is the
            publisher's and stays.
    """

    def __init__(
        self,
        database: SqliteDatabase,
        clock: Clock,
        subscriptions: Iterable[Subscription],
        *,
        retention: timedelta = RETENTION,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._database = database
        self._clock = clock
        self._subscriptions = by_name(subscriptions)
        self._retention = retention
        self._hide = hide
        self._wake_up = _WakeUp()
        with database.writing() as db:
            rows = [{"name": s.name, "topic": s.topic} for s in self._subscriptions.values()]
            db.executemany(SQL["subscribe"], rows)

    def publish(self, message: Message) -> str:
        """Keep a message; on the disk when this returns. The same id again returns the first one's number."""
        checked(message)
        data = self._hide(message.data) if message.topic in FROM_OUTSIDE else message.data
        now = to_us(self._clock.now())
        with self._database.writing() as db:
            seen = db.execute(SQL["seen"], {"id": message.id}).fetchone()
            if seen is not None:
                return str(seen[0])
            number = add_message(db, message.topic, data, message.attributes, now)
            db.execute(SQL["seen_add"], {"id": message.id, "number": number, "at": now})
            before = now - _us(self._retention.total_seconds())
            db.execute(SQL["seen_prune"], {"before": before, "limit": _PRUNED_AT_ONCE})
        self._wake_up.notify()
        return str(number)

    def pull(self, subscription: str, limit: int = 1) -> tuple[LeasedDelivery, ...]:
        """Lease deliveries that are due; what was delivered too often goes to the dead letters instead."""
        who = self._subscriptions[subscription]
        now = to_us(self._clock.now())
        asked = {"subscription": subscription, "now": now, "limit": limit}
        with self._database.reading() as db:
            if db.execute(SQL["visible_any"], asked).fetchone() is None:
                return ()
        until = now + _us(who.lease_s)
        arrivals = []
        with self._database.writing(durable=False) as db:
            for number, attempt, *row in db.execute(SQL["visible"], asked).fetchall():
                if who.deliveries is not None and attempt >= who.deliveries:
                    _bury(db, who, number=number, attempt=attempt, row=row, now=now)
                    continue
                db.execute(SQL["lease"], {"subscription": subscription, "number": number, "until": until})
                arrivals.append(_arrival(who, number, attempt + 1, row))
        return tuple(arrivals)

    def ack(self, arrival: LeasedDelivery) -> bool:
        """Take the message from its subscription; a power cut may bring it back once more."""
        place = _place(arrival)
        with self._database.writing(durable=False) as db:
            ours = db.execute(SQL["ack"], place).rowcount > 0
            if ours:
                db.execute(SQL["message_drop_unwanted"], place)
        return ours

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
        """Return when something happened in this process, or after ``timeout_s``."""
        self._wake_up.wait(timeout_s)

    def waiting(self) -> dict[str, int]:
        """Return how many deliveries are not acknowledged, by subscription."""
        with self._database.reading() as db:
            return {str(name): int(count) for name, count in db.execute(SQL["waiting"])}

    def oldest_s(self) -> float:
        """Return the age of the oldest message that waits; see :class:`agent.adapters.bus.pulling.PullBus`."""
        with self._database.reading() as db:
            row = db.execute(SQL["oldest"], {"dead": Topic.DEAD_LETTER}).fetchone()
        return 0.0 if row is None else max((self._clock.now() - from_us(row[0])).total_seconds(), 0.0)

    def _show(self, arrival: LeasedDelivery, *, in_s: float) -> bool:
        """Make a delivery of ours visible to others at a later time."""
        at = to_us(self._clock.now()) + _us(in_s)
        with self._database.writing(durable=False) as db:
            return db.execute(SQL["show_at"], _place(arrival) | {"at": at}).rowcount > 0


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def add_message(db: sqlite3.Connection, topic: str, data: str, attributes: dict[str, str], now: int) -> int:
    """Add a message and its deliveries inside a transaction of the caller; return its number."""
    row = {"topic": topic, "data": data, "attributes": json.dumps(attributes), "at": now}
    number = db.execute(SQL["message_add"], row).lastrowid
    assert number is not None, "SQLite numbers every row that it adds"
    db.execute(SQL["deliveries_add"], {"topic": topic, "number": number, "at": now})
    db.execute(SQL["message_drop_unwanted"], {"number": number})
    return number


def _bury(db: sqlite3.Connection, who: Subscription, *, number: int, attempt: int, row: list[str], now: int) -> None:
    _, data, attributes, published_at = row
    own = json.loads(attributes)  # not strict: a row of ours
    named = dead_letter_attributes(own, who, attempts=attempt, published_at=from_us(int(published_at)))
    add_message(db, Topic.DEAD_LETTER, data, named, now)
    db.execute(SQL["drop"], {"subscription": who.name, "number": number})
    db.execute(SQL["message_drop_unwanted"], {"number": number})


def _arrival(who: Subscription, number: int, attempt: int, row: list[str]) -> LeasedDelivery:
    topic, data, attributes, published_at = row
    return LeasedDelivery(
        delivery=Delivery(
            topic=Topic(topic),
            message_id=str(number),
            data=data.encode(),
            attributes=json.loads(attributes),  # not strict: a row of ours
            subscription=who.name,
            attempt=attempt,
            published_at=from_us(int(published_at)),
        ),
        handle=f"{number}.{attempt}",
    )


def _place(arrival: LeasedDelivery) -> dict[str, object]:
    number, attempt = arrival.handle.split(".")
    return {"subscription": arrival.delivery.subscription, "number": int(number), "attempt": int(attempt)}
