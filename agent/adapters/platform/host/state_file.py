"""What is on record of a server here: one file, written whole under a lock, so that a successor can go on."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from agent.errors import DependencyFailed
from agent.ports.host import State


class StateFile:
    """The record of one server in a folder.

    Args:
        folder: Made where it is missing; only its owner can read it, because logs stand in it too.
    """

    NAME = "server.json"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether anything was recorded."""
        return self._path.is_file()

    def read(self) -> State | None:
        """Return the state as it stands, without waiting for a writer.

        Raises:
            DependencyFailed: It cannot be read.
        """
        try:
            return State.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise DependencyFailed(
                f"the record of the server in {str(self.folder)!r} was not read",
                why=str(error).splitlines()[0],
                hint="look at the file; remove it only when no server of this name runs",
            ) from error

    @contextmanager
    def writing(self) -> Iterator["Transaction"]:
        """Hold the lock over all processes; what the transaction holds at the end is written where it differs."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            transaction = Transaction(self.read())
            before = transaction.state
            yield transaction
            if transaction.state is not None and transaction.state != before:
                self.write(transaction.state)

    def write(self, state: State) -> None:
        """Write the state at once and whole; hold the lock."""
        fresh = self._path.with_suffix(".tmp")
        with fresh.open("wb") as file:
            file.write(state.model_dump_json(indent=1).encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self._path)

    @property
    def _path(self) -> Path:
        return self.folder / self.NAME


class Transaction:
    """The state while the lock is held; put the changed one back."""

    def __init__(self, state: State | None) -> None:
        self.state = state
