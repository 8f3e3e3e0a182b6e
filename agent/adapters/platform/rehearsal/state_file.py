"""The state of a rehearsal: services, revisions, operations and log entries in an SQLite file of their own."""

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from pydantic import AwareDatetime, ValidationError

from agent.core.service.serving import Traffic
from agent.core.value import Value
from agent.errors import DependencyFailed

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_SCHEMA = """
CREATE TABLE IF NOT EXISTS service (name TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS revision (name TEXT PRIMARY KEY, service TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS operation (
  name TEXT PRIMARY KEY, service TEXT NOT NULL, effect_key TEXT NOT NULL, done INTEGER NOT NULL, body TEXT NOT NULL,
  UNIQUE (service, effect_key)
);
CREATE TABLE IF NOT EXISTS entry (
  id TEXT PRIMARY KEY, service TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS entry_at ON entry (at);
"""

_Row = TypeVar("_Row", bound=Value)


class ServiceRow(Value):
    """A service as the stand-in keeps it; ``writes`` counts changes and makes the etag."""

    name: str
    uid: str
    generation: int
    writes: int = 0
    template: str
    traffic: tuple[Traffic, ...]
    follow: tuple[Traffic, ...] | None = None
    latest_ready: str | None
    latest_created: str
    ready: bool | None
    message: str = ""
    deleted: bool = False
    resumes_with: tuple[int, int] | None = None


class Fate(Value):
    """What will become of a start, decided when it begins; the scenario file may change later.

    Attributes:
        word: Why we say so, for people; every screen shows it.
        outcome: Name of the record, None where there is none.
        tokens_per_s: A computed speed; a recorded one stands in the record.
    """

    result: str
    basis: str
    after_s: float
    crashes_after_s: float | None = None
    message: str = ""
    word: str
    outcome: str | None = None
    tokens_per_s: float | None = None


class RevisionRow(Value):
    """A revision; ``effect_key`` None where we did not make it."""

    name: str
    service: str
    effect_key: str | None
    fate: Fate
    began_at: AwareDatetime
    ends_at: AwareDatetime
    initial: bool = False


class OperationRow(Value):
    """Work under way; a shift of traffic has ended when it is written."""

    name: str
    service: str
    effect_key: str
    revision: str
    ends_at: AwareDatetime
    done: bool = False
    ok: bool | None = None
    says: str = ""


class _ThreadConnection:
    """The connection of one thread, closed with it."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self.connection.close)
        self.connection.execute("PRAGMA synchronous = FULL")


class StateFile:
    """Reads and writes the file; each ``writing()`` block is one transaction, undone by any error.

    The agent may be killed at any moment: what is committed stays, as it would in the world outside. Each thread keeps
    its connection open, because opening one takes longer than most queries.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        with self._open() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection()
        except sqlite3.Error as error:
            self._local.__dict__.pop("kept", None)
            damaged = error.sqlite_errorcode in _DAMAGED if hasattr(error, "sqlite_errorcode") else False
            raise self._failed(str(error), damaged=damaged) from error
        except ValidationError as error:
            raise self._failed("a row of it cannot be read", damaged=True) from error

    def _connection(self) -> sqlite3.Connection:
        kept: _ThreadConnection | None = getattr(self._local, "kept", None)
        if kept is None:
            kept = self._local.kept = _ThreadConnection(self._path)
        return kept.connection

    def _failed(self, why: str, *, damaged: bool) -> DependencyFailed:
        anew = f"stop the service and remove {str(self._path)!r}; the rehearsal begins anew"
        return DependencyFailed(
            "the rehearsal platform did not answer",
            why=f"its file {self._path.name!r}: {why}",
            hint=anew if damaged else "look at the file and its disk; another try may help",
        )

    @contextmanager
    def writing(self) -> Iterator["State"]:
        """Begin a transaction; it commits at the end of the block."""
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield State(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def entries(self, since: datetime | None, until: datetime) -> tuple[tuple[datetime, str], ...]:
        """Return log entries with ``since < at <= until``, oldest first."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT at, body FROM entry WHERE at > ? AND at <= ? ORDER BY at, id",
                (_key(since) if since is not None else "", _key(until)),
            ).fetchall()
        return tuple((datetime.fromisoformat(at), body) for at, body in rows)


class State:
    """What one transaction reads and writes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def service(self, name: str) -> ServiceRow | None:
        """Return a service."""
        return self._one(ServiceRow, "SELECT body FROM service WHERE name = ?", name)

    def keep_service(self, row: ServiceRow) -> None:
        """Write a service."""
        self._connection.execute(
            "INSERT INTO service VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            (row.name, row.model_dump_json()),
        )

    def revision(self, name: str) -> RevisionRow | None:
        """Return a revision."""
        return self._one(RevisionRow, "SELECT body FROM revision WHERE name = ?", name)

    def revisions(self, service: str) -> tuple[RevisionRow, ...]:
        """Return the revisions of a service, oldest first."""
        rows = self._connection.execute("SELECT body FROM revision WHERE service = ? ORDER BY rowid", (service,))
        return tuple(RevisionRow.model_validate_json(body) for (body,) in rows)

    def add_revision(self, row: RevisionRow) -> None:
        """Write a new revision."""
        self._connection.execute(
            "INSERT INTO revision VALUES (?, ?, ?)", (row.name, row.service, row.model_dump_json())
        )

    def operation(self, name: str) -> OperationRow | None:
        """Return an operation."""
        return self._one(OperationRow, "SELECT body FROM operation WHERE name = ?", name)

    def effect(self, service: str, effect_key: str) -> OperationRow | None:
        """Return the operation of an effect."""
        return self._one(
            OperationRow, "SELECT body FROM operation WHERE service = ? AND effect_key = ?", service, effect_key
        )

    def running(self) -> tuple[OperationRow, ...]:
        """Return operations that have not ended, oldest first."""
        rows = self._connection.execute("SELECT body FROM operation WHERE done = 0 ORDER BY rowid")
        return tuple(OperationRow.model_validate_json(body) for (body,) in rows)

    def keep_operation(self, row: OperationRow) -> None:
        """Write an operation."""
        self._connection.execute(
            "INSERT INTO operation VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET done = excluded.done, body = excluded.body",
            (row.name, row.service, row.effect_key, row.done, row.model_dump_json()),
        )

    def add_entry(self, entry_id: str, service: str, at: datetime, body: dict[str, object]) -> None:
        """Write a log entry that can be read from ``at`` on."""
        self._connection.execute(
            "INSERT OR IGNORE INTO entry VALUES (?, ?, ?, ?)", (entry_id, service, _key(at), json.dumps(body))
        )

    def _one(self, kind: type[_Row], sql: str, *values: str) -> _Row | None:
        row = self._connection.execute(sql, values).fetchone()
        return kind.model_validate_json(row[0]) if row is not None else None


def _key(at: datetime) -> str:
    """Times that sort as text: always with microseconds and the same zone."""
    return at.isoformat(timespec="microseconds")
