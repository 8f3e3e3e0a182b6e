"""Every watched service is described once more, and what changed in its configuration is kept for people."""

import structlog

from agent.core.change.config_drift import ServiceRecord, record_of
from agent.core.service.services import Service
from agent.errors import SreError
from agent.ports.stage_context import StageContext
from agent.presentation.drift_text import drift_line

log = structlog.get_logger(__name__)


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
        record = record_of(before, service, live, redact=context.rules.redact, now=now)
        if record == before:
            return False
        records.keep_service_record(record)
    except SreError as error:
        log.debug("service.not_described", service=service.name, error=str(error))
        return False
    _tell(before, record)
    return True


def _tell(before: ServiceRecord | None, record: ServiceRecord) -> None:
    told = before.drift if before is not None else ()
    if record.drift and record.drift != told:
        rows = [drift_line(row) for row in record.drift if row not in told]
        log.warning("drift.found", service=record.service, rows=rows, by=record.changed_by or "unknown")
    elif told and not record.drift:
        log.info("drift.cleared", service=record.service)
