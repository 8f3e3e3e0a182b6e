"""Model profiles in one SQLite table, beside the embedded service's other state."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent.adapters.store.sqlite.side_file import side_file
from agent.errors import DependencyFailed
from agent.fit.checkpoint.checkpoint import ModelProfile

_TABLE: Final = "CREATE TABLE IF NOT EXISTS profiles (name TEXT PRIMARY KEY, read_at TEXT NOT NULL, body BLOB NOT NULL)"
_HELD: Final = "the profiles"


class SqliteProfileShelf:
    """Keeps profiles as JSON; opens the file anew for each call, so that any thread may use it.

    Args:
        path: The database file; it is made, with its folder, on the first put.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, profile: ModelProfile) -> None:
        """Keep a profile; see the port."""
        with side_file(self._path, holds=_HELD, create=True) as database:
            database.execute(_TABLE)
            database.execute(
                "INSERT INTO profiles VALUES (?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET read_at = excluded.read_at, body = excluded.body",
                (profile.name, profile.read_at, to_json(profile)),
            )

    def get(self, name: str) -> ModelProfile | None:
        """The profile of this name; see the port."""
        found = self._select("SELECT name, body FROM profiles WHERE name = ?", (name,))
        return found[0] if found else None

    def list(self) -> tuple[ModelProfile, ...]:
        """All profiles by name; see the port."""
        return self._select("SELECT name, body FROM profiles ORDER BY name", ())

    def _select(self, query: str, values: tuple[str, ...]) -> tuple[ModelProfile, ...]:
        if not self._path.exists():
            return ()
        with side_file(self._path, holds=_HELD) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'profiles'").fetchone():
                return ()
            rows = database.execute(query, values).fetchall()
        if not rows:
            return ()

        return tuple(from_json(body, where=f"profile {name!r} in {str(self._path)!r}") for name, body in rows)


_PROFILE: Final = TypeAdapter(ModelProfile)


def to_json(profile: ModelProfile) -> bytes:
    """A profile as JSON, fields by name."""
    return _PROFILE.dump_json(profile)


def from_json(body: bytes, *, where: str) -> ModelProfile:
    """Read what :func:`to_json` wrote.

    Args:
        body: JSON.
        where: Names it in the error.

    Raises:
        DependencyFailed: It is no profile: damaged, or written by another version.
    """
    try:
        return _PROFILE.validate_json(body)
    except ValidationError as error:
        raise DependencyFailed(
            f"the {where} was not read",
            why=f"{error.error_count()} fields are wrong, {error.errors()[0]['loc']!r} first",
            hint="read the checkpoint again: sre-agent models add SOURCE",
        ) from error
