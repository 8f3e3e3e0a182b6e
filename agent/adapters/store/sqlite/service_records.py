"""What is kept of each service, in the SQLite file of incidents: its configuration as seen, and counted requests."""

from datetime import datetime, timedelta
from typing import Final

from agent.adapters.store.named_sql import queries
from agent.adapters.store.row_json import from_text, to_text, to_us
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.core.change.config_drift import ServiceRecord
from agent.core.service.request_counts import RequestCounts, hour_of

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


KEPT: Final = timedelta(days=100)


class SqliteRequestCounts:
    """Keeps the promises of :class:`agent.ports.request_counts.RequestCountStore`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def add_requests(self, service: str, counts: RequestCounts, *, at: datetime) -> None:
        """Add them to their hour, and forget hours that no page shows any more; see the port."""
        row = {"service": service, "hour": to_us(hour_of(at)), "answered": counts.answered, "failed": counts.failed}
        with self._database.writing(durable=False) as db:
            db.execute(SQL["request_counts_add"], row)
            db.execute(SQL["request_counts_forget"], {"service": service, "hour": to_us(hour_of(at - KEPT))})

    def requests_since(self, since: datetime) -> dict[str, RequestCounts]:
        """Return the sums; see the port."""
        rows = self._database.ask(SQL["request_counts_since"], {"hour": to_us(hour_of(since))})
        return {str(name): RequestCounts(answered=answered, failed=failed) for name, answered, failed in rows}
