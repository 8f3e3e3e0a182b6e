"""The files of a checkpoint, wherever it lies: a few ranges of bytes, never the tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent.errors import InputRejected


class CheckpointFileMissing(InputRejected):
    """The checkpoint has no file of this name, or does not show it to this caller."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Part of one file.

    Attributes:
        data: The bytes from the asked start; shorter than asked only at the end of the file.
        file_bytes: Size of the whole file; None where the source does not say.
    """

    data: bytes
    file_bytes: int | None


@runtime_checkable
class CheckpointFiles(Protocol):
    """One checkpoint's files, by plain name."""

    @property
    def source(self) -> str:
        """Where they lie, fit to be shown: without credentials or query."""
        ...

    def read(self, name: str, *, start: int, length: int) -> Piece:
        """Read part of a file.

        Args:
            name: Plain file name, without a folder.
            start: First byte, >= 0.
            length: Bytes wanted, >= 1.

        Returns:
            At most ``length`` bytes. Never more of the file is fetched than ``start + length`` bytes.

        Raises:
            CheckpointFileMissing: No such file.
            InputRejected: The name is not plain, or the source's answer is not the asked range.
            DependencyFailed: The source does not answer, or not in time.
        """
        ...

    def close(self) -> None:
        """Give back what the reader holds; reading afterwards is a bug."""
        ...
