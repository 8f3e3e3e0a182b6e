"""Where an incident's messages stand, in the SQLite file of the incidents."""

from datetime import datetime, timedelta
from typing import Final

from agent.adapters.store.named_sql import queries
from agent.adapters.store.row_json import to_us
from agent.adapters.store.sqlite.database import SqliteDatabase

SQL: Final = queries("state")


class SqliteCards:
    """Keeps the promises of :class:`agent.ports.stage_context.Cards`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def card(self, incident_id: str, notifier: str) -> str | None:
        """Return the reference of the message, or None; see the port."""
        rows = self._database.ask(SQL["card"], {"incident": incident_id, "notifier": notifier})
        return str(rows[0][0]) if rows else None

    def keep_card(self, incident_id: str, notifier: str, reference: str) -> None:
        """Keep the reference; see the port."""
        row = {"incident": incident_id, "notifier": notifier, "reference": reference}
        with self._database.writing() as db:
            db.execute(SQL["card_keep"], row)
            db.execute(SQL["card_claim_drop"], row)

    def claim_card(
        self, incident_id: str, notifier: str, holder: str, *, reference: str | None, now: datetime, for_s: float
    ) -> bool:
        """Take the right to show it; see the port."""
        until = to_us(now + timedelta(seconds=for_s))
        row = {"incident": incident_id, "notifier": notifier, "holder": holder, "reference": reference}
        times = {"now": to_us(now), "until": until}
        with self._database.writing(durable=False) as db:
            return db.execute(SQL["card_claim"], row | times).rowcount > 0

    def release_card(self, incident_id: str, notifier: str, holder: str) -> None:
        """Give the right back; see the port."""
        with self._database.writing(durable=False) as db:
            db.execute(SQL["card_claim_release"], {"incident": incident_id, "notifier": notifier, "holder": holder})
