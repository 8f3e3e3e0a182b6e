"""The files of a sweep as text: one cell or one request per line, strict JSON with stable keys."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from pydantic import ValidationError

from agent.core.sweep.cell import Cell, RequestRow
from agent.core.value import Value, canonical, mistakes_of
from agent.errors import InputRejected
from agent.strict_json import read_object

CELLS_FILE: Final = "cells.jsonl"
REQUESTS_FOLDER: Final = "requests"
LINE_BYTES: Final = 1_000_000
_HINT: Final = "the file was not written by sre-agent sweep, or was changed since; take one that was not"

_Row = TypeVar("_Row", bound=Value)


def line_of(value: Value) -> bytes:
    """Return one line: sorted keys, no blanks, with its line end."""
    return canonical(value.model_dump(mode="json")) + b"\n"


def cells_from(raw: bytes, *, name: str = CELLS_FILE) -> tuple[Cell, ...]:
    """Return the cells of a ``cells.jsonl``, in the file's order; of two of one id the later counts.

    A last line without its line end is a write that was cut off, and is left out: its cell is measured again.

    Args:
        raw: The whole file.
        name: Names the file in errors.

    Raises:
        InputRejected: A line is no cell, or two cells belong to different sweeps.
    """
    cells = {cell.id: cell for cell in _rows(raw, Cell, name)}
    if len({cell.provenance.sweep for cell in cells.values()}) > 1:
        raise InputRejected(f"{name} was not read", why="it holds cells of more than one sweep", hint=_HINT)
    return tuple(cells.values())


def requests_from(raw: bytes, *, name: str) -> tuple[RequestRow, ...]:
    """Return the raw rows of one cell.

    Args:
        raw: The whole file.
        name: Names the file in errors.

    Raises:
        InputRejected: A line is no row.
    """
    return tuple(_rows(raw, RequestRow, name))


def requests_text(rows: Iterable[RequestRow]) -> bytes:
    """Return the file of raw rows."""
    return b"".join(line_of(row) for row in rows)


def _rows(raw: bytes, kind: type[_Row], name: str) -> Iterator[_Row]:
    for number, line in enumerate(raw.split(b"\n")[:-1], start=1):
        what = f"line {number} of {name}"
        found = read_object(line, what=what, limit=LINE_BYTES, hint=_HINT)
        try:
            yield kind.model_validate(found)
        except ValidationError as error:
            raise InputRejected(f"the {what} was not read", why=mistakes_of(error)[0], hint=_HINT) from error
