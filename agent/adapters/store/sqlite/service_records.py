"""What was seen of each service, in the SQLite file of the incidents."""

from typing import Final

from agent.adapters.store.named_sql import queries
from agent.adapters.store.row_json import from_text, to_text
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.core.change.config_drift import ServiceRecord

SQL: Final = queries("state")


class SqliteServiceRecords:
    """Keeps the promises of :class:`agent.ports.service_records.ServiceRecords`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def service_record(self, service: str) -> ServiceRecord | None:
        """Return the record of a service, or None; see the port."""
        with self._database.reading() as db:
            row = db.execute(SQL["service_record"], {"service": service}).fetchone()
        return None if row is None else from_text(ServiceRecord, str(row[0]))

    def keep_service_record(self, record: ServiceRecord) -> None:
        """Keep a record; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["service_record_keep"], {"service": record.service, "body": to_text(record)})
