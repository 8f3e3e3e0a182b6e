"""One SQLite file for several threads and processes: connections, transactions, translated errors."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agent.adapters.store.named_sql import migrations
from agent.adapters.store.sqlite.errors import FOREIGN, translated
from agent.adapters.store.sqlite.group_commit import Handle, Turns
from agent.adapters.store.sqlite.schema import Kind, prepare
from agent.errors import DependencyFailed

BUSY_S: Final = 5.0
_MAKING: Final = threading.Lock()

Connect = Callable[[str, float], sqlite3.Connection]


def connect(path: str, busy_s: float) -> sqlite3.Connection:
    """Open a connection that commits only on request."""
    return sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)


class _Process:
    """What belongs to one process: its connections, and the turns that its writers take."""

    def __init__(self, turns: Turns) -> None:
        self.pid = os.getpid()
        self.turns = turns
        self.local = threading.local()
        self.handles: weakref.WeakSet[Handle] = weakref.WeakSet()


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
        self._process = self._new_process()
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
            try:
                handle.connection.execute("BEGIN")
                yield handle.connection
                handle.connection.execute("COMMIT")
            except BaseException:
                handle.undo()
                raise

    def ask(self, sql: str, values: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of one question, which needs no transaction around it: it sees one state by itself."""
        try:
            return self._handle().connection.execute(sql, values or {}).fetchall()
        except FOREIGN as error:
            raise translated(error, str(self._path)) from error

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that commits when the block ends, and leaves nothing behind when it raises.

        Several threads that write at once share a commit; see :class:`agent.adapters.store.sqlite.group_commit.Turns`.

        Args:
            durable: Whether the commit outlives a power cut (``synchronous=FULL``). Without, a power cut may take back
                the last commits, never a part of one; for what is done again harmlessly.

        Raises:
            DependencyFailed: Nothing was written, or (an error of the commit itself) perhaps everything.
        """
        turns = self._current().turns
        with self._translating(), turns.turn(self._handle, durable=durable) as connection:
            yield connection

    def close(self) -> None:
        """Close the connections of all threads of this process; using them afterwards opens new ones."""
        process, self._process = self._current(), self._new_process()
        for handle in tuple(process.handles):
            handle.connection.close()
        _LIVE.discard(self)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except FOREIGN as error:
            raise translated(error, str(self._path)) from error

    def _current(self) -> _Process:
        if self._process.pid != os.getpid():
            assert not self._process.handles, f"{str(self._path)!r} was open before the fork"
            self._process = self._new_process()
        return self._process

    def _new_process(self) -> _Process:
        return _Process(Turns(str(self._path), self._busy_s))

    def _handle(self) -> Handle:
        process = self._current()
        handle: Handle | None = getattr(process.local, "handle", None)
        if handle is None or not handle.usable:
            handle = self._open()
            process.local.handle = handle
            process.handles.add(handle)
        return handle

    def _open(self) -> Handle:
        assert self._path.resolve() not in _INHERITED, f"{str(self._path)!r} was open before the fork"
        _LIVE.add(self)
        connection = self._opened(str(self._path), self._busy_s)
        try:
            prepare(connection, self._kind, migrations(self._kind.prefix), path=str(self._path), busy_s=self._busy_s)
        except BaseException:
            connection.close()
            raise
        handle = Handle(connection)
        closing = weakref.finalize(handle, connection.close)  # when its thread has ended
        closing.atexit = False
        return handle

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
                hint="give the process write access to the file and its folder",
            ) from error


_LIVE: weakref.WeakSet[SqliteDatabase] = weakref.WeakSet()
_INHERITED: set[Path] = set()


def _inherit() -> None:
    """Note in the child of a fork which files it may not touch."""
    _INHERITED.update(database.path.resolve() for database in _LIVE)


os.register_at_fork(after_in_child=_inherit)
