"""What was seen of each service, until the process ends."""

import threading

from agent.adapters.store.row_json import from_text, to_text
from agent.core.change.config_drift import ServiceRecord


class MemoryServiceRecords:
    """Keeps the promises of :class:`agent.ports.service_records.ServiceRecords`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bodies: dict[str, str] = {}

    def service_record(self, service: str) -> ServiceRecord | None:
        """Return the record of a service, or None; see the port."""
        with self._lock:
            body = self._bodies.get(service)
        return None if body is None else from_text(ServiceRecord, body)

    def keep_service_record(self, record: ServiceRecord) -> None:
        """Keep a record; see the port."""
        with self._lock:
            self._bodies[record.service] = to_text(record)
