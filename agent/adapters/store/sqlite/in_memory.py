"""A database without a file: the same schema and the same statements, for tests and for replays that keep nothing."""

import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from agent.adapters.store.named_sql import migrations
from agent.adapters.store.sqlite.database import BUSY_S, SqliteDatabase, connect
from agent.adapters.store.sqlite.errors import FOREIGN, translated
from agent.adapters.store.sqlite.schema import Kind, require_recent_sqlite

_NAME = ":memory:"


class InMemoryDatabase(SqliteDatabase):
    """One connection for all threads, one transaction at a time; everything is forgotten with the object.

    Raises:
        InputRejected: SQLite is too old.
    """

    def __init__(self, kind: Kind) -> None:
        self._path = Path(_NAME)
        self._lock = threading.RLock()
        self._connection = connect(_NAME, BUSY_S)
        weakref.finalize(self, self._connection.close)
        _empty(kind).backup(self._connection)
        self._connection.execute("PRAGMA foreign_keys = ON")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction; committed when the block ends, taken back when it raises."""
        return self._transaction()

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:  # noqa: ARG002 - nothing outlives it
        """As :meth:`reading`."""
        return self._transaction()

    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        with self._lock:
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
            except FOREIGN as error:
                raise translated(error, _NAME) from error

    def ask(self, sql: str, values: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of one question."""
        try:
            with self._lock:
                return self._connection.execute(sql, values or {}).fetchall()
        except FOREIGN as error:
            raise translated(error, _NAME) from error

    def close(self) -> None:
        """Do nothing: the connection ends with the object."""


@cache
def _empty(kind: Kind) -> sqlite3.Connection:
    """Return a database with the schema and no row, from which others are copied: a tenth of the time of making it."""
    require_recent_sqlite(_NAME)
    connection = connect(_NAME, BUSY_S)
    for _, script in migrations(kind.prefix):
        connection.executescript(script)
    return connection
