"""The quarantine in the SQLite file of the incidents."""

from collections.abc import Callable, Mapping
from typing import Final

from agent.adapters.bus.quarantine.message_key import FAILURES_KEPT, key_of, row_of
from agent.adapters.store.named_sql import queries
from agent.adapters.store.row_json import from_us, to_us
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.ports.bus import Delivery
from agent.ports.clock import Clock

SQL: Final = queries("bus")
_PRUNED_AT_ONCE: Final = 8


class SqliteQuarantine:
    """Keeps the promises of :class:`agent.ports.bus.Quarantine`.

    Args:
        database: A state database.
        clock: Dates the rows.
        redact: Takes secrets out of a text before it is kept.
    """

    def __init__(self, database: SqliteDatabase, clock: Clock, *, redact: Callable[[str], str]) -> None:
        self._database = database
        self._clock = clock
        self._redact = redact

    def failed(self, delivery: Delivery, reason: str) -> int:
        """Count a handled failure; see the port."""
        now = self._clock.now()
        row = {"key": key_of(delivery), "reason": self._redact(reason), "at": to_us(now)}
        with self._database.writing() as db:
            (count,) = db.execute(SQL["failure_add"], row).fetchone()
            db.execute(SQL["failures_prune"], {"before": to_us(now - FAILURES_KEPT), "limit": _PRUNED_AT_ONCE})
        return int(count)

    def put(self, delivery: Delivery, reason: str) -> None:
        """Keep a message with its reason; the first reason stays. See the port."""
        key, row = key_of(delivery), row_of(delivery, reason, redact=self._redact)
        with self._database.writing() as db:
            db.execute(SQL["quarantine_add"], row | {"key": key, "at": to_us(self._clock.now())})
            db.execute(SQL["failures_forget"], {"key": key})

    def rows(self, limit: int = 100) -> tuple[Mapping[str, str], ...]:
        """Return what is kept, newest first; see the port. ``encoding`` says how ``data`` is written."""
        with self._database.reading() as db:
            found = db.execute(SQL["quarantine_rows"], {"limit": limit}).fetchall()
        names = ("id", "topic", "reason", "at", "data", "encoding", "attributes")
        return tuple(dict(zip(names, row, strict=True)) | {"at": from_us(row[3]).isoformat()} for row in found)
