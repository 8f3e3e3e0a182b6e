"""What was counted of the requests to each service: kept by the hour, for people; no decision rests on it."""

from datetime import datetime
from typing import Protocol

from agent.core.service.request_counts import RequestCounts


class RequestCountStore(Protocol):
    """Keeps counts by service and hour for somewhat longer than the longest window that is shown.

    Every method raises DependencyFailed where the store does not answer.
    """

    def add_requests(self, service: str, counts: RequestCounts, *, at: datetime) -> None:
        """Add what was counted since the last time to the hour of ``at``."""
        ...

    def requests_since(self, since: datetime) -> dict[str, RequestCounts]:
        """Return the sums from the hour of ``since`` on; only services of which anything was counted."""
        ...
