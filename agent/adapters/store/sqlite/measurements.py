"""Measurements in one SQLite table, beside the embedded service's other state."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent.adapters.store.sqlite.side_file import side_file
from agent.errors import DependencyFailed
from agent.fit.speed.calibration import Measurement

_TABLE: Final = "CREATE TABLE IF NOT EXISTS measurements (id TEXT PRIMARY KEY, body BLOB NOT NULL)"
_HELD: Final = "the measurements"
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
        with side_file(self._path, holds=_HELD, create=True) as database:
            database.execute(_TABLE)
            before = database.total_changes
            database.executemany("INSERT OR IGNORE INTO measurements VALUES (?, ?)", rows)
            return database.total_changes - before

    def list(self) -> tuple[Measurement, ...]:
        """All measurements, ordered by id."""
        if not self._path.exists():
            return ()
        with side_file(self._path, holds=_HELD) as database:
            database.execute(_TABLE)
            rows = database.execute("SELECT id, body FROM measurements ORDER BY id").fetchall()
        return tuple(self._read(name, body) for name, body in rows)

    def remove(self, measurement_id: str) -> bool:
        """Forget one; returns whether it was there."""
        if not self._path.exists():
            return False
        with side_file(self._path, holds=_HELD) as database:
            database.execute(_TABLE)
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
