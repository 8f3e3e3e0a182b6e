"""A SQLite file beside the embedded service's databases: opened anew for each call, so that any thread may use it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent.errors import DependencyFailed

_BUSY_S: Final = 5.0


@contextmanager
def side_file(path: Path, *, holds: str, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a file for one transaction, which is committed, or rolled back on an error.

    Args:
        path: The file.
        holds: What it keeps, for the error, such as ``the profiles``.
        create: Whether its folder is made where there is none.

    Raises:
        DependencyFailed: It was not reached.
    """
    try:
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=_BUSY_S)
    except (OSError, sqlite3.Error) as error:
        raise _unreached(path, holds, error) from error
    try:
        with database:
            yield database
    except sqlite3.Error as error:
        raise _unreached(path, holds, error) from error
    finally:
        database.close()


def _unreached(path: Path, holds: str, error: Exception) -> DependencyFailed:
    return DependencyFailed(
        f"{holds} in {str(path)!r} were not reached", why=str(error), hint="check the file and its folder"
    )
