"""The folder of a sweep: cell by cell, with raw rows, whatever happens in between."""

import resource
import signal
from pathlib import Path

import pytest

from agent.adapters.load.sweep_folder import SweepFolder, read_cells, read_requests, store_cell
from agent.core.sweep.cell import Outcome
from agent.errors import DependencyFailed, InputRejected
from tests.agent.core.sweep.values import cell, rows


def test_cells_are_stored_one_by_one_with_their_rows(tmp_path: Path) -> None:
    """Each is there at once, in order, and its rows are those that it was computed from."""
    first = store_cell(tmp_path / "s", cell(1), rows())
    assert read_cells(tmp_path / "s") == (first,)
    dropped = store_cell(tmp_path / "s", cell(64, outcome=Outcome.DROPPED, measured=None, why="no room"))
    assert read_cells(tmp_path / "s") == (first, dropped)
    assert first.measured.requests_file == "requests/c128-o32-n1.jsonl"
    assert read_requests(tmp_path / "s", first) == tuple(rows())
    assert read_requests(tmp_path / "s", dropped) == ()


def test_a_torn_line_is_written_over(tmp_path: Path) -> None:
    """A write that was cut off costs its own cell, never the next one."""
    first = store_cell(tmp_path, cell(1), rows())
    with (tmp_path / "cells.jsonl").open("ab") as file:
        file.write(b'{"format":"sre-ag')
    second = store_cell(tmp_path, cell(8), rows())
    assert read_cells(tmp_path) == (first, second)


def test_rows_that_were_changed_are_refused(tmp_path: Path) -> None:
    """Or are gone."""
    stored = store_cell(tmp_path, cell(1), rows())
    path = tmp_path / stored.measured.requests_file
    path.write_bytes(path.read_bytes().replace(b"96", b"97", 1))
    with pytest.raises(InputRejected, match="not the file that the cell was computed from"):
        read_requests(tmp_path, stored)
    path.unlink()
    with pytest.raises(InputRejected, match="it is gone"):
        read_requests(tmp_path, stored)


def test_no_folder_is_no_sweep(tmp_path: Path) -> None:
    """A folder without cells is a sweep that has stored none yet."""
    assert read_cells(tmp_path) == ()
    with pytest.raises(InputRejected, match="no such folder"):
        read_cells(tmp_path / "gone")


def test_a_full_disk_keeps_what_is_stored(tmp_path: Path) -> None:
    """The kernel's own limit on the size of a file stands for a disk without room."""
    first = store_cell(tmp_path, cell(1), rows())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(DependencyFailed, match=r"File too large.*stored cells are kept"):
            store_cell(tmp_path, cell(8), rows())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert read_cells(tmp_path) == (first,)


def test_seconds_that_are_reserved_are_kept_and_replaced(tmp_path: Path) -> None:
    """What is noted last counts; a damaged note is refused, for nobody knows what was spent."""
    folder = SweepFolder(tmp_path / "s")
    assert folder.reserved_s() == {}
    folder.reserve({"c128-o32-n1": 12.5})
    assert SweepFolder(tmp_path / "s").reserved_s() == {"c128-o32-n1": 12.5}
    folder.reserve({})
    assert folder.reserved_s() == {}
    for damaged in ("", "[]", '{"c": -1}', '{"c": "x"}'):
        (tmp_path / "s" / "reserved.json").write_text(damaged)
        with pytest.raises(InputRejected, match=r"reserved\.json"):
            folder.reserved_s()
