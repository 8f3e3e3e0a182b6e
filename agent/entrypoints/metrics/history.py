"""Counts the stored incidents: each is read when it is new or has moved, and adds what it did not add before."""

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from agent.core.diagnosis.model_price import ModelPrice
from agent.core.incident.incident import Incident
from agent.core.incident.observed import Observed, observed
from agent.core.intake.signal import LIVE
from agent.entrypoints.metrics import catalogue
from agent.entrypoints.metrics.catalogue import Kind, Metric
from agent.entrypoints.metrics.label_values import class_label, service_label
from agent.entrypoints.telemetry import trace_of
from agent.errors import InputRejected
from agent.ports.store import IncidentStore, Query

PAGE: Final = 200  # incidents of one question to the store
PAGES: Final = 5  # and how many questions a scrape asks at most about the past
AT_ONCE: Final = 1000  # open incidents looked at in one scrape
OVERLAP: Final = timedelta(minutes=10)  # by how much the clocks of two writers may differ

Key = tuple[Metric, tuple[str, ...]]


@dataclass
class _Counted:
    version: int
    adds: dict[Key, float] = field(default_factory=dict)


class History:
    """The counters and histograms over all live incidents of a store.

    They are folded from the record, so that a restart, and each of several processes, comes to the same numbers. The
    past is read in pages, a few at each scrape; ``registry`` means something once ``complete`` is true. From then on a
    scrape reads what is open, what was open, and what was opened since.

    Args:
        store: Where incidents are kept.
        services: Names of the watched services, whose series begin at 0.
        price: What the model's tokens cost; None where no price is set.
    """

    def __init__(self, store: IncidentStore, services: Collection[str], price: ModelPrice | None = None) -> None:
        self._store = store
        self._services = frozenset(services)
        self._price = price
        self._lock = threading.Lock()
        self._counted: dict[str, _Counted] = {}
        self._open: set[str] = set()
        self._past_before: datetime | None = None
        self._newest: datetime | None = None
        self.complete = False
        self.registry = CollectorRegistry()
        priced = (m for m in catalogue.HISTORY if price is not None or m is not catalogue.MODEL_USD)
        self._series = {metric: _series(metric, self.registry) for metric in priced}
        self._begin_at_zero()

    def read(self, now: datetime) -> None:
        """Count what happened since the last time.

        Args:
            now: The time, UTC.

        Raises:
            DependencyFailed: The store did not answer; what was read is counted, the rest next time.
        """
        with self._lock:
            if self._newest is None:
                self._newest = now
            if not self.complete:
                self._read_past()
            self._read_present()

    def _read_past(self) -> None:
        for _ in range(PAGES):
            page = self._store.incidents(Query(run=LIVE, before=self._past_before, limit=PAGE))
            new = [incident for incident in page if incident.id not in self._counted]
            for incident in new:
                self._count(incident)
            if len(page) < PAGE:
                self.complete = True
                return
            oldest = page[-1].opened_at
            self._past_before = oldest + timedelta(microseconds=1) if new else oldest  # several may share a moment

    def _read_present(self) -> None:
        assert self._newest is not None
        still_open = self._store.incidents(Query(open_only=True, limit=AT_ONCE))
        opened = self._store.incidents(Query(run=LIVE, since=self._newest - OVERLAP, limit=AT_ONCE))
        found = {incident.id: incident for incident in (*opened, *still_open) if incident.run == LIVE}
        for known in self._open - found.keys():
            if (ended := self._load(known)) is not None:
                found[known] = ended
        for incident in found.values():
            self._count(incident)
        self._open = {incident.id for incident in found.values() if not incident.ended}
        self._newest = max((i.opened_at for i in found.values()), default=self._newest)

    def _load(self, incident_id: str) -> Incident | None:
        try:
            return self._store.load(incident_id)
        except InputRejected:  # taken away by whoever may: what it added stays
            return None

    def _count(self, incident: Incident) -> None:
        counted = self._counted.get(incident.id)
        if counted is not None and counted.version == incident.version:
            return
        before = counted.adds if counted is not None else {}
        adds = {} if incident.request is not None else dict(self._adds(incident))
        for (metric, labels), value in adds.items():
            series = self._series[metric].labels(*labels)
            if metric.kind is Kind.HISTOGRAM:
                if (metric, labels) not in before:
                    series.observe(value, _exemplar(incident))
            elif value > before.get((metric, labels), 0.0):
                series.inc(value - before.get((metric, labels), 0.0))
        self._counted[incident.id] = _Counted(incident.version, {**before, **adds})
        if not incident.ended:
            self._open.add(incident.id)

    def _adds(self, incident: Incident) -> Iterator[tuple[Key, float]]:
        seen = observed(incident, self._store.timeline(incident.id))
        service = service_label(incident.service, self._services)
        for part, seconds in seen.took.items():
            yield (catalogue.TOOK[part], (service,)), seconds
        if seen.class_ is not None:
            yield (catalogue.CLASSES, (service, class_label(seen.class_))), 1
        for metric, value in self._plain(seen):
            yield (metric, (service,)), value
        for metric, counts in (
            (catalogue.ENDED, seen.ends),
            (catalogue.DECISIONS, seen.answers),
            (catalogue.VERDICTS, seen.verdicts),
            (catalogue.MODEL_TOKENS, {"input": seen.tokens_in, "output": seen.tokens_out}),
        ):
            for name, count in counts.items():
                yield (metric, (service, name)), count

    def _plain(self, seen: Observed) -> Iterator[tuple[Metric, float]]:
        yield catalogue.OPENED, 1
        yield catalogue.PLANS, seen.plans
        yield catalogue.REFUSED, seen.refused
        yield catalogue.ROLL_BACKS, seen.roll_backs
        yield catalogue.MODEL_CALLS, seen.model_calls
        yield catalogue.MODEL_S, seen.model_s
        if self._price is not None:
            yield catalogue.MODEL_USD, self._price.usd(tokens_in=seen.tokens_in, tokens_out=seen.tokens_out)

    def _begin_at_zero(self) -> None:
        """A series that begins at 1 has no first increase, so a watched service has all of its series at once."""
        for metric, series in self._series.items():
            for service in self._services:
                for value in metric.fixed[1] if metric.fixed is not None else (None,):
                    series.labels(service, *([value] if value is not None else []))


def _exemplar(incident: Incident) -> dict[str, str] | None:
    """Return which trace shows it, as OpenMetrics has it; None where none was sent."""
    trace = trace_of({"traceparent": incident.traceparent})
    return {"trace_id": trace.trace} if trace.sampled else None


def _series(metric: Metric, registry: CollectorRegistry) -> Any:
    if metric.kind is Kind.HISTOGRAM:
        return Histogram(metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=registry)
    return Counter(metric.name, metric.help, metric.labels, registry=registry)
