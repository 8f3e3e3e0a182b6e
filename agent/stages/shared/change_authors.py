"""Who changed a service: what was seen of it, with everybody whom the platform's audit log names."""

from datetime import datetime, timedelta
from typing import Final

from agent.core.change.config_drift import BETWEEN_LOOKS, CLOCKS_APART, ServiceRecord, with_authors
from agent.errors import SreError
from agent.ports.audit_log import AuditLog
from agent.structured_log import structlog

log = structlog.get_logger(__name__)

LOOKED_BACK: Final = timedelta(days=1)


def with_audited_authors(
    record: ServiceRecord | None, audit_log: AuditLog | None, at: datetime
) -> ServiceRecord | None:
    """Return the record with the authors of the day before; as it is where the audit log cannot be read.

    Args:
        record: What was seen of a service.
        audit_log: None where the platform keeps none, or we do not read it.
        at: The end of that day.
    """
    recent = [c for c in record.changes if at - LOOKED_BACK <= c.at and not c.ours] if record is not None else []
    if record is None or audit_log is None or not recent:
        return record
    try:
        calls = audit_log.changes(
            record.service, since=recent[0].at - BETWEEN_LOOKS, until=recent[-1].at + CLOCKS_APART
        )
    except SreError as error:
        log.info("authors.not_read", service=record.service, error=str(error))
        return record
    return record.with_(changes=with_authors(record.changes, calls))
