"""Measurements in one SQLite table, beside the embedded service's other state."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent.errors import DependencyFailed
from agent.fit.speed.calibration import Measurement

_TABLE: Final = "CREATE TABLE IF NOT EXISTS measurements (id TEXT PRIMARY KEY, body BLOB NOT NULL)"
_BUSY_S: Final = 5.0
_ROW: Final = TypeAdapter(Measurement)


class SqliteMeasurements:
    """Keeps measurements as JSON; opens the file anew for each call, so that any thread may use it.

    Args:
        path: The database file; it is made, with its folder, on the first write.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, measurements: Iterable[Measurement]) -> int:
        """Keep measurements, all or none; of one id the first stays. Returns how many were new."""
        rows = [(each.id, _ROW.dump_json(each)) for each in measurements]
        with self._open() as database:
            before = database.total_changes
            database.executemany("INSERT OR IGNORE INTO measurements VALUES (?, ?)", rows)
            return database.total_changes - before

    def list(self) -> tuple[Measurement, ...]:
        """All measurements, ordered by id."""
        if not self._path.exists():
            return ()
        with self._open() as database:
            rows = database.execute("SELECT id, body FROM measurements ORDER BY id").fetchall()
        return tuple(self._read(name, body) for name, body in rows)

    def remove(self, measurement_id: str) -> bool:
        """Forget one; returns whether it was there."""
        if not self._path.exists():
            return False
        with self._open() as database:
            return database.execute("DELETE FROM measurements WHERE id = ?", (measurement_id,)).rowcount > 0

    def _read(self, name: str, body: bytes) -> Measurement:
        try:
            return _ROW.validate_json(body)
        except ValidationError as error:
            raise DependencyFailed(
                f"measurement {name!r} in {str(self._path)!r} was not read",
                why=f"{error.error_count()} fields are wrong",
                hint=f"remove it: sre-agent calibration remove {name}",
            ) from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self._path, timeout=_BUSY_S)
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from error
        try:
            with database:  # one transaction: committed, or rolled back on an error
                database.execute(_TABLE)
                yield database
        except sqlite3.Error as error:
            raise self._failed(error) from error
        finally:
            database.close()

    def _failed(self, error: Exception) -> DependencyFailed:
        return DependencyFailed(
            f"the measurements in {str(self._path)!r} were not reached",
            why=str(error),
            hint="check the file and its folder",
        )
