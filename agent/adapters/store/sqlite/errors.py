"""SQLite's errors in our words: who must act, and how."""

import sqlite3
from typing import Final

from agent.errors import DependencyFailed, InputRejected, SreError

FOREIGN: Final = (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeEncodeError)
"""What sqlite3 raises, its own classes and Python's for values that it cannot hold."""

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class DatabaseTimeout(DependencyFailed):
    """Others kept the file longer than we wait; says nothing about what was to be written."""


_HINT: Final[dict[int, str]] = {
    sqlite3.SQLITE_BUSY: "it is tried again; if it stays, look which process keeps the file open",
    sqlite3.SQLITE_LOCKED: "it is tried again; if it stays, look which process keeps the file open",
    sqlite3.SQLITE_FULL: "free space on the disk, then it goes on by itself",
    sqlite3.SQLITE_IOERR: "look at the disk and its mount; the last commit that returned is safe",
    sqlite3.SQLITE_READONLY: "let the process write the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "let the process write the file and its folder",
    sqlite3.SQLITE_PERM: "let the process write the file and its folder",
    sqlite3.SQLITE_CORRUPT: "stop the service, keep the file, restore the last backup",
    sqlite3.SQLITE_NOTADB: "point the setting at another file; this one is no database",
    sqlite3.SQLITE_NOMEM: "give the process more memory",
}


def translated(error: BaseException, path: str) -> SreError:
    """Return our error for one of ``FOREIGN``.

    Args:
        error: What sqlite3 raised.
        path: The file, as shown to people.

    Returns:
        InputRejected for a value that no try can store; DependencyFailed for all the rest, where another try can help
        or a person sees the reason.
    """
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    unfit = isinstance(error, (sqlite3.DataError, OverflowError, UnicodeEncodeError))
    if unfit or primary == sqlite3.SQLITE_TOOBIG:
        return InputRejected(
            f"a value was not stored in {path!r}",
            why=f"{name}: {_words(error)}",
            hint="send less, or other characters; it is not tried again",
        )
    kind = DatabaseTimeout if primary in _BUSY else DependencyFailed
    return kind(
        f"the database {path!r} did not answer",
        why=f"{name}: {_words(error)}",
        hint=_HINT.get(primary or -1, "check the file and the log of the service"),
    )


def _words(error: BaseException) -> str:
    """What sqlite3 said, without the value that it could not encode."""
    return error.reason if isinstance(error, UnicodeEncodeError) else str(error)
