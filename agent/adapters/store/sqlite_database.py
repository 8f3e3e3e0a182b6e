"""One SQLite file for several threads and processes: connections, transactions, translated errors."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent.adapters.store.named_sql import migrations
from agent.adapters.store.sqlite_errors import FOREIGN, DatabaseTimeout, translated
from agent.adapters.store.sqlite_schema import Kind, prepare
from agent.errors import DependencyFailed

BUSY_S: Final = 5.0
_MAKING: Final = threading.Lock()

Connect = Callable[[str, float], sqlite3.Connection]


def connect(path: str, busy_s: float) -> sqlite3.Connection:
    """Open a connection that commits only when told."""
    return sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)


class _Handle:
    """A connection of one thread; closed when the thread has ended."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._durable: bool | None = True
        closing = weakref.finalize(self, connection.close)
        closing.atexit = False

    def sync(self, *, durable: bool) -> None:
        """Set how the next commit is written; where setting it fails, nothing is known and it is set again."""
        if self._durable is not durable:
            self._durable = None
            self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable


class _Process:
    """What belongs to one process: its connections, and the lock that lets its writers queue in order."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.writing = threading.Lock()
        self.local = threading.local()
        self.handles: weakref.WeakSet[_Handle] = weakref.WeakSet()


class SqliteDatabase:
    """One file, one connection for each thread.

    A file that is open must not be used by a child of a fork, not even through a new connection: SQLite's list of its
    own locks is inherited, the locks are not (https://www.sqlite.org/howtocorrupt.html, section 2.6). Close it before
    the fork; both sides may use it afterwards. Anything else is a bug, and an assertion.

    Args:
        path: The file; made with its folder, readable by its owner alone.
        kind: Which schema it holds.
        busy_s: How long a writer waits for another one.
        opened: Opens a connection; tests give one that fails.

    Raises:
        InputRejected: The file is of another kind, or was written by a newer program.
        DependencyFailed: The file cannot be opened or prepared.

    Every method raises DatabaseTimeout, a DependencyFailed, where others write for longer than ``busy_s``.
    """

    def __init__(self, path: Path, kind: Kind, *, busy_s: float = BUSY_S, opened: Connect = connect) -> None:
        self._path = path
        self._kind = kind
        self._busy_s = busy_s
        self._opened = opened
        self._process = _Process()
        self._make_file()
        with self._translating():
            self._handle()

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the file and writes nothing."""
        with self._translating():
            handle = self._handle()
            with self._transaction(handle, "BEGIN"):
                yield handle.connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that commits when the block ends, and leaves nothing behind when it raises.

        Args:
            durable: Whether the commit outlives a power cut (``synchronous=FULL``). Without, a power cut may take back
                the last commits, never a part of one; for what is done again harmlessly.

        Raises:
            DependencyFailed: Nothing was written, or (an error of the commit itself) perhaps everything.
        """
        process = self._current()
        if not process.writing.acquire(timeout=self._busy_s):
            raise self._busy()
        try:
            with self._translating():
                handle = self._handle()
                handle.sync(durable=durable)
                with self._transaction(handle, "BEGIN IMMEDIATE"):
                    yield handle.connection
        finally:
            process.writing.release()

    def close(self) -> None:
        """Close the connections of all threads of this process; using them afterwards opens new ones."""
        process, self._process = self._current(), _Process()
        for handle in tuple(process.handles):
            handle.connection.close()
        _LIVE.discard(self)

    @contextmanager
    def _transaction(self, handle: _Handle, begin: str) -> Iterator[None]:
        connection = handle.connection
        try:
            connection.execute(begin)
            yield
            connection.execute("COMMIT")
        except BaseException:
            self._undo(handle)
            raise

    def _undo(self, handle: _Handle) -> None:
        """Roll back; a connection that cannot even do that is given up, which rolls back too."""
        try:
            if handle.connection.in_transaction:
                handle.connection.execute("ROLLBACK")
        except FOREIGN:
            self._process.local.__dict__.pop("handle", None)
            handle.connection.close()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except FOREIGN as error:
            raise translated(error, str(self._path)) from error

    def _current(self) -> _Process:
        if self._process.pid != os.getpid():
            assert not self._process.handles, f"{str(self._path)!r} was open before the fork"
            self._process = _Process()
        return self._process

    def _handle(self) -> _Handle:
        process = self._current()
        handle: _Handle | None = getattr(process.local, "handle", None)
        if handle is None:
            handle = self._open()
            process.local.handle = handle
            process.handles.add(handle)
        return handle

    def _open(self) -> _Handle:
        assert self._path.resolve() not in _INHERITED, f"{str(self._path)!r} was open before the fork"
        _LIVE.add(self)
        connection = self._opened(str(self._path), self._busy_s)
        try:
            prepare(connection, self._kind, migrations(self._kind.prefix), path=str(self._path), busy_s=self._busy_s)
        except BaseException:
            connection.close()
            raise
        return _Handle(connection)

    def _make_file(self) -> None:
        """Make a file that only its owner may read; one that exists is left alone.

        Opening and closing it here would take the locks of every connection of this process:
        https://www.sqlite.org/howtocorrupt.html, section 2.2.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with _MAKING:
                if not self._path.exists():
                    os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return  # another process was quicker
        except OSError as error:
            raise DependencyFailed(
                f"the database {str(self._path)!r} was not opened",
                why=str(error),
                mend="let the process write the file and its folder",
            ) from error

    def _busy(self) -> DatabaseTimeout:
        return DatabaseTimeout(
            f"the database {str(self._path)!r} did not answer",
            why=f"other threads of this process have been writing for {self._busy_s:g} s",
            mend="it is tried again; if it stays, look at the disk",
        )


_LIVE: weakref.WeakSet[SqliteDatabase] = weakref.WeakSet()
_INHERITED: set[Path] = set()


def _inherit() -> None:
    """Note in the child of a fork which files it may not touch."""
    _INHERITED.update(database.path.resolve() for database in _LIVE)


os.register_at_fork(after_in_child=_inherit)
