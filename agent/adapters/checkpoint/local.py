"""A checkpoint in a folder of this machine."""

from __future__ import annotations

import stat
from pathlib import Path

from agent.adapters.checkpoint.names import plain
from agent.errors import DependencyFailed, InputRejected
from agent.ports.checkpoint import CheckpointFileMissing, Piece


class LocalCheckpoint:
    """Reads ranges of the files of one folder; links are followed, as the hub's own cache is made of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def source(self) -> str:
        """The folder."""
        return str(self._folder)

    def read(self, name: str, *, start: int, length: int) -> Piece:
        """Read part of a file; see the port."""
        path = self._folder / plain(name)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise InputRejected(f"{str(path)!r} was not read", why="it is no regular file", hint="name the folder")
            with path.open("rb") as file:
                file.seek(start)
                return Piece(data=file.read(length), file_bytes=status.st_size)
        except FileNotFoundError as error:
            raise CheckpointFileMissing(
                f"{str(path)!r} was not read", why="there is no such file", hint="name the checkpoint's folder"
            ) from error
        except OSError as error:
            raise DependencyFailed(
                f"{str(path)!r} was not read",
                why=error.strerror or type(error).__name__,
                hint="check the disk or mount",
            ) from error

    def close(self) -> None:
        """Nothing is held open."""
