"""One service process per state folder; the kernel releases the lock however the process ends."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from agent.errors import DependencyFailed, StateConflict
from agent.settings import Settings

NAME = "process.lock"
RETRY_S = 0.5


@contextmanager
def state_lock(
    settings: Settings, *, shared: bool = False, wait_until: threading.Event | None = None
) -> Iterator[None]:
    """Hold the state folder until the end.

    Commands that only look or decide take no lock: they work beside the service.

    Args:
        settings: Name the folder.
        shared: Whether others of the same sort may hold it too: several watchers, each of its own server.
        wait_until: Wait for another process to end, until this is set; None does not wait.

    Raises:
        StateConflict: Another process works on this folder.
        DependencyFailed: The folder cannot be written.
    """
    path = settings.state / NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a")
    except OSError as error:
        raise DependencyFailed(
            "nothing was started",
            why=f"{str(path.parent)!r} cannot be written: {(error.strerror or str(error)).lower()}",
            hint="give the process write access to the state folder, or set STORE",
        ) from error
    with lock:
        while not _is_locked(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            if wait_until is None or wait_until.wait(RETRY_S):
                raise StateConflict(
                    "nothing was started",
                    why=f"another process works on the state folder {str(settings.state)!r}",
                    hint="use that one, stop it first, or give this one another folder: STORE=sqlite:FOLDER",
                )
        yield


def _is_locked(lock: TextIO, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
