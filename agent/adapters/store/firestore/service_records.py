"""What was seen of each service, in the Firestore database of the incidents: ``services/NAME``."""

from agent.adapters.store.firestore.documents import Documents, document_path
from agent.adapters.store.row_json import from_text, to_text
from agent.core.change.config_drift import ServiceRecord


class FirestoreServiceRecords:
    """Keeps the promises of :class:`agent.ports.service_records.ServiceRecords`."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def service_record(self, service: str) -> ServiceRecord | None:
        """Return the record of a service, or None; see the port."""
        found = self._documents.get(document_path("services", service))
        return None if found is None else from_text(ServiceRecord, str(found.data["body"]))

    def keep_service_record(self, record: ServiceRecord) -> None:
        """Keep a record; see the port."""
        self._documents.put(document_path("services", record.service), {"body": to_text(record)})
