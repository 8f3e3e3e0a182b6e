"""The mark of the installation in a SQLite file, the same in both databases."""

import sqlite3
from typing import Final

from agent.adapters.store.named_sql import queries
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.core.database_pair import InstallationMark
from agent.core.decision.audit import AuditRow

SQL: Final = queries("installation")


class SqliteMark:
    """Keeps the promises of :class:`agent.ports.store.MarkStore`.

    Args:
        database: A state or a control database.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def mark(self) -> InstallationMark | None:
        """Return the mark; see the port."""
        rows = self._database.ask(SQL["mark"])
        return _mark(rows[0]) if rows else None

    def first_mark(self, mark: InstallationMark) -> InstallationMark:
        """Set the mark where there is none; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["mark_first"], _row(mark))
            return _mark(db.execute(SQL["mark"]).fetchone())

    def set_mark(self, mark: InstallationMark) -> None:
        """Set the mark; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["mark_set"], _row(mark))

    def pair(self) -> None:
        """Note that the other one carries it too; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["mark_paired"])

    def reach(self, row: AuditRow, *, of: str) -> None:
        """Let the mark grow; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["mark_reached"], {"id": of, "reached": row.number, "chain": row.chain})


def _row(mark: InstallationMark) -> dict[str, object]:
    return {"id": mark.installation, "paired": int(mark.paired), "reached": mark.reached, "chain": mark.chain}


def _mark(row: sqlite3.Row | tuple[str, int, int, str]) -> InstallationMark:
    return InstallationMark(installation=row[0], paired=bool(row[1]), reached=row[2], chain=row[3])
