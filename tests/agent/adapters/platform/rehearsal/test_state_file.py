"""The file of a rehearsal: damaged, it says so."""

import sqlite3
from pathlib import Path

import pytest

from agent.adapters.platform.rehearsal.state_file import ServiceRow, StateFile
from agent.errors import DependencyFailed


def written(path: Path) -> None:
    """Keep a row in the file and close it."""
    row = ServiceRow(
        name="s", uid="u", generation=1, template="{}", traffic=(), latest_ready=None, latest_created="r", ready=None
    )
    with StateFile(path).writing() as page:
        page.keep_service(row)


@pytest.mark.parametrize("how", ["no database", "torn pages", "a row that is no JSON", "a row of another version"])
def test_a_damaged_file_is_a_sentence_that_says_what_to_do(tmp_path, how):
    """Whether it is noticed as it is opened or as it is read."""
    path = tmp_path / "rehearsal.sqlite"
    written(path)
    if how == "no database":
        path.write_text("garbage " * 1000)
    elif how == "torn pages":
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        body = bytearray(path.read_bytes())
        body[4096:] = b"\xff" * (len(body) - 4096)
        path.write_bytes(body)
    else:
        connection = sqlite3.connect(path)
        connection.execute("UPDATE service SET body = ?", ('{"name"' if "JSON" in how else '{"later": 1}',))
        connection.commit()
        connection.close()

    def look():
        with StateFile(path).writing() as page:
            page.service("s")

    with pytest.raises(DependencyFailed, match="the rehearsal begins anew"):
        look()
