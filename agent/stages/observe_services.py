"""Every watched service is described once more, and what changed in its configuration is kept for people."""

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from agent.core.change.config_drift import Rows, ServiceRecord, record_of
from agent.core.intake.signal import LIVE
from agent.core.service.services import Service
from agent.errors import SreError
from agent.ports.stage_context import StageContext
from agent.ports.store import Query
from agent.presentation.drift_text import drift_line
from agent.structured_log import structlog

log = structlog.get_logger(__name__)

RECENT: Final = 5  # incidents and requests of a service that are looked through for the plan of a change
STILL_OURS: Final = timedelta(hours=1)  # a tick sees a change within minutes, after a pause of the agent later


def observe_services(context: StageContext) -> tuple[str, ...]:
    """Describe every watched service and keep what changed; a service that sleeps is not woken by that.

    Drift is told once, when it is first seen, and once when it is gone; nothing is changed. A service that cannot be
    described now is looked at the next time.

    Returns:
        The services of which something new was kept.
    """
    return tuple(service.name for service in context.rules.services.services if _observed(context, service))


def _observed(context: StageContext, service: Service) -> bool:
    records = context.service_records
    if records is None:
        return False
    try:
        live = context.live(service.name)
        if live is None:
            return False
        before = records.service_record(service.name)
        now = context.clock.now()
        planned = partial(_planned, context, service.name, now)
        record = record_of(before, service, live, redact=context.rules.redact, now=now, planned=planned)
        if record == before:
            return False
        records.keep_service_record(record)
    except SreError as error:
        log.debug("service.not_described", service=service.name, error=str(error))
        return False
    _log_drift(before, record)
    return True


def _planned(context: StageContext, service: str, now: datetime, rows: Rows) -> bool:
    """Whether a plan that was carried out recently made exactly these changes, or its undo took them back."""
    made = {(row.path, row.before, row.after) for row in rows}
    for incident in context.store.incidents(Query(run=LIVE, service=service, limit=RECENT)):
        if incident.plan is None or incident.execution is None or incident.phase_at < now - STILL_OURS:
            continue
        ours = {(d.path, d.before, d.after) for d in incident.plan.difference}
        if made and (made <= ours or made <= {(path, after, before) for path, before, after in ours}):
            return True
    return False


def _log_drift(before: ServiceRecord | None, record: ServiceRecord) -> None:
    known = before.drift if before is not None else ()
    if record.drift and record.drift != known:
        rows = [drift_line(row) for row in record.drift if row not in known]
        log.warning("drift.found", service=record.service, rows=rows, by=record.changed_by or "unknown")
    elif known and not record.drift:
        log.info("drift.cleared", service=record.service)
