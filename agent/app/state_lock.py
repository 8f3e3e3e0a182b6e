"""One service process per state folder; the kernel releases the lock however the process ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from agent.errors import DependencyFailed, StateConflict
from agent.settings import Settings

NAME = "process.lock"


@contextmanager
def state_lock(settings: Settings, *, shared: bool = False) -> Iterator[None]:
    """Hold the state folder until the end.

    Commands that only look or decide take no lock: they work beside the service.

    Args:
        settings: Name the folder.
        shared: Whether others of the same sort may hold it too: several watchers, each of its own server.

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
            why=str(error),
            hint="give the process write access to the state folder, or set STORE",
        ) from error
    with lock:
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateConflict(
                "nothing was started",
                why=f"another process works on the state folder {str(settings.state)!r}",
                hint="use that one, stop it first, or give this one another folder: STORE=sqlite:FOLDER",
            ) from error
        yield
