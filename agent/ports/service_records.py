"""What was seen of each watched service: kept beside the incidents, for people; no effect rests on it."""

from typing import Protocol

from agent.core.change.config_drift import ServiceRecord


class ServiceRecords(Protocol):
    """Keeps one record for each service; the last one that was kept stands.

    Every method raises DependencyFailed where the store does not answer.
    """

    def service_record(self, service: str) -> ServiceRecord | None:
        """Return the record of a service, or None where it was never seen."""
        ...

    def keep_service_record(self, record: ServiceRecord) -> None:
        """Keep a record in place of the one before it."""
        ...
