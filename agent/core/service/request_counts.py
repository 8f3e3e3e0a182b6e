"""How many requests to a model a server answered, and how many it failed, by its own HTTP counters."""

from datetime import datetime
from typing import Final

from agent.core.service.metric_rules import labels_of, read_labelled_samples
from agent.core.value import Value

SERIES = "http_requests_total"
"""Labels handler, method and status ("2xx"): of prometheus-fastapi-instrumentator, which vLLM uses (facts 3.3)."""

_MOST: Final = 2**53  # above it a float cannot count by one: whatever wrote it was no counter of requests


class RequestCounts(Value):
    """Requests to the model, of a span of time or since a server's start.

    Attributes:
        answered: With any status below 500: a request that was wrong in itself was answered too.
        failed: With a status of 500 or above. An answer that breaks while it is streamed has its status before that.
    """

    answered: float = 0
    failed: float = 0

    @property
    def all(self) -> float:
        """Both together."""
        return self.answered + self.failed

    def since(self, before: "RequestCounts") -> "RequestCounts":
        """Return what came since; what a restarted server counts anew is all of it new."""
        if self.answered < before.answered or self.failed < before.failed:
            return self
        return RequestCounts(answered=self.answered - before.answered, failed=self.failed - before.failed)

    def plus(self, more: "RequestCounts") -> "RequestCounts":
        """Return both together."""
        return RequestCounts(answered=self.answered + more.answered, failed=self.failed + more.failed)


def hour_of(at: datetime) -> datetime:
    """Return the start of the hour under which requests of a time are kept."""
    return at.replace(minute=0, second=0, microsecond=0)


class RequestBudget(Value):
    """What a service did with the requests that it was to answer.

    Attributes:
        objective: The share of requests that it is to answer, between 0 and 1.
    """

    service: str
    counts: RequestCounts
    objective: float

    @property
    def answered(self) -> float:
        """The share that was answered."""
        return self.counts.answered / self.counts.all if self.counts.all else 1.0

    @property
    def used(self) -> float:
        """The share of the error budget that is used; more than 1 where the objective is missed."""
        return self.counts.failed / (self.counts.all * (1 - self.objective)) if self.counts.all else 0.0


def read_request_counts(text: str) -> RequestCounts | None:
    """Return what a server counted since its start; None where it has no such counters, or no count.

    Only what is posted below ``/v1/`` is a request to the model: lists of models, health and metrics are none.

    Args:
        text: The body of /metrics.
    """
    known, counts = False, {"answered": 0.0, "failed": 0.0}
    for name, written, value in read_labelled_samples(text):
        if name != SERIES:
            continue
        known, labels = True, labels_of(written)
        if labels.get("method") != "POST" or not labels.get("handler", "").startswith("/v1/"):
            continue
        counts["failed" if labels.get("status", "").startswith("5") else "answered"] += value
    return RequestCounts(**counts) if known and all(0 <= count <= _MOST for count in counts.values()) else None
