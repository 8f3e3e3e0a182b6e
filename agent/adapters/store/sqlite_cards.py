"""Where an incident's messages stand, in the SQLite file of the incidents."""

from typing import Final

from agent.adapters.store.named_sql import queries
from agent.adapters.store.sqlite_database import SqliteDatabase

SQL: Final = queries("state")


class SqliteCards:
    """Keeps one reference for each incident and notifier; the last one kept stands.

    Args:
        database: A state database.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def card(self, incident_id: str, notifier: str) -> str | None:
        """Return the reference of the message, or None; see the port."""
        with self._database.reading() as db:
            row = db.execute(SQL["card"], {"incident": incident_id, "notifier": notifier}).fetchone()
        return None if row is None else str(row[0])

    def keep_card(self, incident_id: str, notifier: str, reference: str) -> None:
        """Keep the reference; see the port."""
        row = {"incident": incident_id, "notifier": notifier, "reference": reference}
        with self._database.writing() as db:
            db.execute(SQL["card_keep"], row)
