"""Writers of one process take turns; those who wait for each other share one commit, and so one sync of the disk."""

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from agent.adapters.store.sqlite.errors import FOREIGN, DatabaseTimeout

MOST: Final = 64
"""Transactions in one commit."""

LONGEST_S: Final = 0.01
"""Nobody joins a commit that began longer ago, so that the first of it is not kept waiting."""

COMMIT_S: Final = 60.0
"""How long a commit of others is waited for; then nobody knows what became of it, and that is said."""

_SAVE: Final = "SAVEPOINT one_of_many"
_RELEASE: Final = "RELEASE one_of_many"
_TAKE_BACK: Final = "ROLLBACK TO one_of_many"


class Handle:
    """A connection of one thread.

    Attributes:
        usable: False once it was given up.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.usable = True
        self._durable: bool | None = True

    def sync(self, *, durable: bool) -> None:
        """Set how the next commit is written; where setting it fails, nothing is known and it is set again."""
        if self._durable is not durable:
            self._durable = None
            self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def undo(self) -> None:
        """Roll back; a connection that cannot even do that is given up, which rolls back too."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except FOREIGN:
            self.usable = False
            self.connection.close()


class _Waiter:
    """One transaction in the queue; notified when its turn comes, and when its commit is over."""

    def __init__(self, *, durable: bool) -> None:
        self.durable = durable
        self.called = False
        self.lost: BaseException | None = None
        self._wake_up = threading.Lock()
        self._wake_up.acquire()

    def notify(self) -> None:
        self._wake_up.release()

    def wait(self, timeout_s: float) -> bool:
        return self._wake_up.acquire(timeout=timeout_s)


class Turns:
    """The queue of the writers of one process, and the commit that they share.

    Whoever has the turn writes into the open transaction, or begins one. When its statements are done and another
    one waits, it gives the turn away and waits; the last one commits for all of them, and all return together. Nobody
    waits for somebody who has not come yet: a writer alone begins, writes and commits.

    What this promises, and why it holds:

    - No transaction returns before the commit that holds it has returned; if that fails, each of them fails.
    - A transaction that raises is taken back alone, to its own savepoint. Where SQLite has rolled everything back (a
      full disk), those before it fail with it.
    - A transaction sees the rows of those before it in the same commit, which may still be lost. So it returns, and
      raises what it concluded from them, only when they are written; if they are lost, it fails as they do.
    - A transaction that must outlive a power cut never joins one that need not; the other way round is no harm.

    Args:
        path: The file, as shown to people.
        wait_s: How long a turn is waited for.
    """

    def __init__(self, path: str, wait_s: float) -> None:
        self._path = path
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._taken = False
        self._queue: deque[_Waiter] = deque()
        # These belong to whoever has the turn.
        self._handle: Handle | None = None
        self._members: list[_Waiter] = []
        self._durable = True
        self._began = 0.0

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._queue)

    @contextmanager
    def turn(self, handle: Callable[[], Handle], *, durable: bool) -> Iterator[sqlite3.Connection]:
        """A transaction; committed when the block has ended, taken back when it raises.

        Args:
            handle: Returns the connection of the calling thread.
            durable: Whether the commit outlives a power cut.

        Raises:
            DatabaseTimeout: The turn did not come in time: nothing was written. Or nobody said what became of the
                commit: it may have been written.
            Exception: One of ``FOREIGN``, as SQLite says.
        """
        waiter = _Waiter(durable=durable)
        self._enter(waiter)
        try:
            connection = self._begin(handle, durable=durable)
            yield connection
            if self._members:
                connection.execute(_RELEASE)
            self._members.append(waiter)
        except BaseException as error:
            lost = self._take_back() or self._commit()
            if lost is not None and isinstance(error, Exception):
                raise lost from None
            raise
        through = self._handle
        lost = self._outcome(waiter, through) if self._hands_on() else self._commit()
        if lost is not None:
            raise lost

    def _enter(self, waiter: _Waiter) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            self._queue.append(waiter)
        if waiter.wait(self._wait_s):
            return
        with self._lock:
            if not waiter.called:
                self._queue.remove(waiter)
                raise self._timeout(f"other threads of this process have been writing for {self._wait_s:g} s")
        waiter.wait(0)  # it was called in the last moment

    def _begin(self, handle_of_thread: Callable[[], Handle], *, durable: bool) -> sqlite3.Connection:
        if self._members and self._handle is not None:
            self._handle.connection.execute(_SAVE)
            return self._handle.connection
        self._handle = None
        self._handle = handle = handle_of_thread()
        handle.sync(durable=durable)
        handle.connection.execute("BEGIN IMMEDIATE")
        self._durable, self._began = durable, time.monotonic()
        return handle.connection

    def _hands_on(self) -> bool:
        """Give the turn to the next one, if it can join this commit."""
        if len(self._members) >= MOST or time.monotonic() - self._began > LONGEST_S:
            return False
        with self._lock:
            if not self._queue or (self._queue[0].durable and not self._durable):
                return False
            self._call()
            return True

    def _leave(self) -> None:
        with self._lock:
            if self._queue:
                self._call()
            else:
                self._taken = False

    def _call(self) -> None:
        waiter = self._queue.popleft()
        waiter.called = True
        waiter.notify()

    def _outcome(self, waiter: _Waiter, handle: Handle | None) -> BaseException | None:
        """Wait for the commit that another one makes."""
        if waiter.wait(COMMIT_S):
            return waiter.lost
        if handle is not None:
            handle.usable = False  # others still write through it
        raise self._timeout(f"a commit of several threads has lasted for {COMMIT_S:g} s")

    def _take_back(self) -> BaseException | None:
        """Undo the statements of this turn; return the error of those before it, if they went with it."""
        handle = self._handle
        if handle is None:
            return None
        why: BaseException = sqlite3.OperationalError("a transaction of the same commit rolled everything back")
        if self._members and handle.connection.in_transaction:
            try:
                handle.connection.execute(_TAKE_BACK)
                handle.connection.execute(_RELEASE)
            except FOREIGN as error:
                why = error
            else:
                return None
        handle.undo()
        return self._over(why) if self._members else None

    def _commit(self) -> BaseException | None:
        """Commit for everyone whose statements stand in the transaction, and let the next one in."""
        handle = self._handle
        if handle is None or not self._members:
            self._leave()
            return None
        lost: BaseException | None = sqlite3.OperationalError("the commit was interrupted")
        try:
            handle.connection.execute("COMMIT")
            lost = None
        except FOREIGN as error:
            lost = error
        finally:
            if lost is not None:
                handle.undo()
            self._over(lost)
        return lost

    def _over(self, lost: BaseException | None) -> BaseException | None:
        """Tell all who share the commit what became of it, and let the next one in."""
        members, self._members = self._members, []
        self._handle = None
        for member in members:
            member.lost = lost
            member.notify()
        self._leave()
        return lost

    def _timeout(self, why: str) -> DatabaseTimeout:
        return DatabaseTimeout(
            f"the database {self._path!r} did not answer",
            why=why,
            hint="it is tried again; if it persists, check the disk",
        )
