"""Dead letters of the queue in the SQLite file: shown, and delivered again in the transaction that takes them away."""

import base64
import json
import sqlite3
from typing import Any, Final

from agent.adapters.bus.embedded import add_message
from agent.adapters.store.named_sql import queries
from agent.adapters.store.row_json import from_us, to_us
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.ports.bus import DeadLetter, Topic
from agent.ports.clock import Clock

SQL: Final = queries("bus")
SUBSCRIPTION: Final = f"{Topic.DEAD_LETTER}-sub"
_FROM: Final = "CloudPubSubDeadLetterSourceSubscription"
_ATTEMPTS: Final = "CloudPubSubDeadLetterSourceDeliveryCount"


class SqliteDeadLetters:
    """Keeps the promises of :class:`agent.ports.bus.DeadLetters`.

    Args:
        database: A state database; queue and quarantine stand in it together.
        clock: Dates the new delivery.
    """

    def __init__(self, database: SqliteDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def letters(self, limit: int = 100) -> tuple[DeadLetter, ...]:
        """Return what was given up, newest first; see the port."""
        asked = {"limit": limit, "subscription": SUBSCRIPTION}
        with self._database.reading() as db:
            put_aside = db.execute(SQL["quarantine_letters"], asked).fetchall()
            given_up = db.execute(SQL["dead_letters"], asked).fetchall()
        found = [*map(_quarantined, put_aside), *map(_given_up, given_up)]
        return tuple(sorted(found, key=lambda letter: (letter.at, letter.key), reverse=True)[:limit])

    def letter(self, key: str) -> DeadLetter | None:
        """Return one of them; see the port."""
        with self._database.reading() as db:
            return _read(db, key)

    def deliver_again(self, key: str) -> bool:
        """Take it away and put its message into the queue, in one transaction; see the port."""
        now = to_us(self._clock.now())
        with self._database.writing() as db:
            letter = _read(db, key)
            if letter is None or letter.topic is None or letter.kept_because:
                return False
            add_message(db, letter.topic, letter.data, letter.attributes, now)
            if key.startswith("q:"):
                db.execute(SQL["quarantine_take"], {"key": key[2:]})
            else:
                place = {"subscription": SUBSCRIPTION, "number": int(key[2:])}
                db.execute(SQL["drop"], place)
                db.execute(SQL["message_drop_unwanted"], place)
        return True


def _read(db: sqlite3.Connection, key: str) -> DeadLetter | None:
    kind, _, name = key.partition(":")
    if kind == "q":
        row = db.execute(SQL["quarantine_letter"], {"key": name}).fetchone()
        return _quarantined(row) if row is not None else None
    if kind != "d" or not name.isascii() or not name.isdigit() or len(name) > 18:
        return None
    row = db.execute(SQL["dead_letter"], {"subscription": SUBSCRIPTION, "number": int(name)}).fetchone()
    return _given_up(row) if row is not None else None


def _quarantined(row: tuple[Any, ...]) -> DeadLetter:
    key, topic, reason, at, data, encoding, attributes = row
    body = base64.b64decode(data).decode("utf-8", "replace") if encoding == "base64" else str(data)
    own = _topic(topic)
    kept = "" if encoding == "utf-8" else "its body is no text, so that no delivery of it can succeed"
    return DeadLetter(
        key=f"q:{key}",
        topic=own,
        at=from_us(at),
        reason=reason,
        data=body,
        attributes=json.loads(attributes),  # not strict: a row of ours
        kept_because=kept or ("" if own is not None else f"nobody here receives {topic!r}"),
    )


def _given_up(row: tuple[Any, ...]) -> DeadLetter:
    number, data, attributes, published_at = row
    named = json.loads(attributes)  # not strict: a row of ours
    source = str(named.get(_FROM, ""))
    own = _topic(source.removesuffix("-sub"))
    kept = {name: value for name, value in named.items() if not name.startswith("CloudPubSubDeadLetter")}
    return DeadLetter(
        key=f"d:{number}",
        topic=own,
        at=from_us(published_at),
        reason=f"{named.get(_ATTEMPTS, 'all')} deliveries to {source or 'its subscription'} came to nothing",
        data=str(data),
        attributes=kept,
        kept_because="" if own is not None else f"nobody here receives from {source!r}",
    )


def _topic(name: str) -> Topic | None:
    try:
        found = Topic(name)
    except ValueError:
        return None
    return None if found is Topic.DEAD_LETTER else found
