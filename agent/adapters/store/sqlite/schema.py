"""The schema of a file: whose it is, which version it has, and bringing an older one up to date."""

import sqlite3
import time
from enum import Enum
from typing import Final

from agent.adapters.store.named_sql import statements
from agent.errors import InputRejected

_PAUSE_S: Final = 0.01
OLDEST_SQLITE: Final = (3, 35, 0)
"""The first with RETURNING (https://www.sqlite.org/lang_returning.html); RHEL 8 has 3.26."""


class Kind(Enum):
    """What a file holds; ``mark`` is its SQLite application id, four letters."""

    STATE = ("state", int.from_bytes(b"SREs", "big"))
    CONTROL = ("control", int.from_bytes(b"SREc", "big"))

    def __init__(self, prefix: str, mark: int) -> None:
        self.prefix = prefix
        self.mark = mark


def prepare(
    connection: sqlite3.Connection,
    kind: Kind,
    scripts: tuple[tuple[int, str], ...],
    *,
    path: str,
    busy_s: float,
) -> None:
    """Make a connection ours: pragmas, and the migrations that the file has not seen, in one transaction.

    Raises:
        InputRejected: The file is of another kind, or newer than this program; or SQLite is too old.
        sqlite3.Error: As SQLite says.
    """
    require_recent_sqlite(path)
    for pragma in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = FAST", "cache_size = -16384"):
        connection.execute(f"PRAGMA {pragma}")
    newest = len(scripts)
    if _is_current(connection, kind, newest, path):
        return
    _use_wal(connection, busy_s)
    connection.execute("BEGIN IMMEDIATE")
    try:
        _check(connection, kind, newest, path)
        for number, script in scripts[_number(connection, "user_version") :]:
            for statement in statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {kind.mark}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_recent_sqlite(path: str) -> None:
    """Refuse a SQLite that does not know our statements.

    Raises:
        InputRejected: It is too old.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise InputRejected(
            f"the database {path!r} was not opened",
            why=f"this Python has SQLite {sqlite3.sqlite_version}, and {wanted} or newer is needed",
            hint="use a Python with a newer SQLite, such as one of uv, pyenv or the image; nothing was written",
        )


def _is_current(connection: sqlite3.Connection, kind: Kind, newest: int, path: str) -> bool:
    return _check(connection, kind, newest, path) == newest and _mode(connection) == "wal"


def _check(connection: sqlite3.Connection, kind: Kind, newest: int, path: str) -> int:
    """Return the file's version, or refuse the file."""
    version = _number(connection, "user_version")
    mark = _number(connection, "application_id")
    if mark not in {kind.mark, 0} or (mark == 0 and version != 0):
        raise InputRejected(
            f"the database {path!r} was not opened",
            why=f"it is not the {kind.prefix} database of this service (application id {mark:#x})",
            hint="point the setting at another file; each database has its own",
        )
    if version > newest:
        raise InputRejected(
            f"the database {path!r} was not opened",
            why=f"its schema has version {version}, this program knows {newest}",
            hint="run the newer program, or restore the copy that was made before the upgrade",
        )
    return version


def _use_wal(connection: sqlite3.Connection, busy_s: float) -> None:
    """Switch to the write-ahead log; the switch does not wait for others by itself, so we do."""
    ends = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > ends:
                raise
        if _mode(connection) == "wal":
            return
        if time.monotonic() > ends:
            raise sqlite3.OperationalError("the file does not take a write-ahead log (a network mount, or in use)")
        time.sleep(_PAUSE_S)


def _mode(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
