"""The folder of one sweep: cells are stored one by one, each with its raw rows, and survive a crash."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent.core.sweep.cell import Cell, RequestRow
from agent.core.sweep.cells_file import (
    CELLS_FILE,
    REQUESTS_FOLDER,
    cells_from,
    line_of,
    requests_from,
    requests_text,
)
from agent.core.sweep.grant import SweepGrant
from agent.core.sweep.sweep import (
    GRANT_FILE,
    RESERVED_FILE,
    SWEEP_FILE,
    Sweep,
    grant_from,
    reserved_from,
    sweep_from,
)
from agent.errors import DependencyFailed, InputRejected


def read_cells(folder: Path) -> tuple[Cell, ...]:
    """Return the stored cells of a sweep; none where it has not stored one.

    Raises:
        InputRejected: There is no such folder, or ``cells.jsonl`` is damaged.
    """
    if not folder.is_dir():
        raise InputRejected(
            f"the sweep {str(folder)!r} was not read", why="there is no such folder", hint="name the --out of a sweep"
        )
    return cells_from(_read(folder / CELLS_FILE), name=CELLS_FILE)


def read_requests(folder: Path, cell: Cell) -> tuple[RequestRow, ...]:
    """Return the raw rows of a cell; none where it has none.

    Raises:
        InputRejected: The file is missing, damaged, or not the one that the cell was computed from.
    """
    if cell.measured is None or not cell.measured.requests_file:
        return ()
    name = f"{REQUESTS_FOLDER}/{cell.id}.jsonl"
    raw = _read(folder / name)
    if hashlib.sha256(raw).hexdigest() != cell.measured.requests_sha256:
        raise InputRejected(
            f"{name} was not read",
            why="it is not the file that the cell was computed from",
            hint="restore it, or measure the cell again in another folder",
        )
    return requests_from(raw, name=name)


def store_cell(folder: Path, cell: Cell, rows: Sequence[RequestRow] = ()) -> Cell:
    """Store a cell and its raw rows; either all of it is there afterwards, or the cell is not.

    Returns:
        The cell as stored, with its file of rows named.

    Raises:
        DependencyFailed: The disk is full or cannot be written; what was stored before is untouched.
    """
    with _disk(folder):
        if rows and cell.measured is not None:
            name, text = f"{REQUESTS_FOLDER}/{cell.id}.jsonl", requests_text(rows)
            (folder / REQUESTS_FOLDER).mkdir(parents=True, exist_ok=True)
            replace_file(folder / name, text)
            said = {"requests_file": name, "requests_sha256": hashlib.sha256(text).hexdigest()}
            cell = cell.with_(measured=cell.measured.with_(**said))
        folder.mkdir(parents=True, exist_ok=True)
        whole = _whole_lines(folder / CELLS_FILE)
        replace_file(folder / CELLS_FILE, whole + line_of(cell))
    return cell


class SweepFolder:
    """See :class:`agent.ports.load.CellStore`.

    Args:
        folder: Where the sweep is kept; made when the first cell is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sweep(self) -> Sweep | None:
        """Return the sweep that is kept here, None where there is none yet.

        Raises:
            InputRejected: It is damaged.
        """
        path = self._folder / SWEEP_FILE
        return sweep_from(_read(path)) if path.exists() else None

    def keep(self, kept: Sweep | SweepGrant) -> None:
        """Keep a sweep or its grant.

        Raises:
            DependencyFailed: There is no room, or the folder cannot be written.
        """
        with _disk(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._folder / (SWEEP_FILE if isinstance(kept, Sweep) else GRANT_FILE), line_of(kept))

    def grant(self) -> SweepGrant | None:
        """Return the grant that is kept here, None where nobody approved the sweep; whether it holds is asked later.

        Raises:
            InputRejected: It is damaged.
        """
        path = self._folder / GRANT_FILE
        return grant_from(_read(path)) if path.exists() else None

    def cells(self) -> tuple[Cell, ...]:
        """See the port."""
        return read_cells(self._folder) if self._folder.is_dir() else ()

    def store(self, cell: Cell, rows: Sequence[RequestRow] = ()) -> Cell:
        """See the port."""
        return store_cell(self._folder, cell, rows)

    def reserved_s(self) -> Mapping[str, float]:
        """See the port."""
        path = self._folder / RESERVED_FILE
        return reserved_from(_read(path)) if path.exists() else {}

    def reserve(self, seconds: Mapping[str, float]) -> None:
        """See the port."""
        with _disk(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._folder / RESERVED_FILE, json.dumps(dict(seconds)).encode())


def replace_file(path: Path, text: bytes) -> None:
    """Write a file whole: after a crash it is the old one or the new one."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def store_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts below a sweep's folder, each whole, over those of the same name.

    Args:
        folder: Of the sweep.
        files: By their path in it.

    Raises:
        DependencyFailed: The disk is full or cannot be written; what was stored before is untouched.
    """
    with _disk(folder):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / name, text.encode())


def _whole_lines(path: Path) -> bytes:
    raw = path.read_bytes() if path.exists() else b""
    return raw[: raw.rfind(b"\n") + 1]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        if path.name == CELLS_FILE:
            return b""
        raise InputRejected(f"{path.name} was not read", why="it is gone", hint="restore the sweep's folder") from None
    except OSError as error:
        raise InputRejected(
            f"{path.name} was not read", why=str(error.strerror), hint="look at the sweep's folder"
        ) from error


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DependencyFailed(
            f"nothing more was stored in {str(folder)!r}",
            why=str(error.strerror or error),
            hint="free some disk space, then rerun the same command: stored cells are kept",
        ) from error
