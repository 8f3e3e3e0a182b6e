"""Counts the stored incidents: each is read when it is new or has moved, and adds what it did not add before."""

import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

from agent.core.diagnosis.model_request import ModelPrice
from agent.core.incident.incident import Incident
from agent.core.incident.observed import Observed, observed
from agent.core.incident.phase import NEXT
from agent.core.intake.signal import LIVE
from agent.entrypoints.metrics import catalogue
from agent.entrypoints.metrics.catalogue import Kind, Metric, class_label, service_label
from agent.entrypoints.metrics.incident_pages import OpenIncidents, next_before, open_incidents
from agent.entrypoints.telemetry import trace_of
from agent.errors import NotFound
from agent.ports.store import IncidentStore, Query

PAGE: Final = 200  # incidents of one question to the store
PAGES: Final = 5  # and how many questions a scrape asks at most about what was opened
MOVED: Final = 1000  # open incidents whose timelines are read in one scrape
LEFT: Final = 200  # incidents that are open no more, or no more listed, and are loaded in one scrape
OVERLAP: Final = timedelta(minutes=10)  # by how much the clocks of two writers may differ

Key = tuple[Metric, tuple[str, ...]]

disable_created_metrics()  # type: ignore[no-untyped-call]  # they would tell when this process began, not the series


@dataclass(slots=True)
class _Counted:
    version: int
    opened_at: datetime
    final: bool  # nothing leads on from there, or it adds nothing
    adds: dict[Key, float]  # what it added so far, without zeros


class History:
    """The counters and histograms over all live incidents of a store.

    They are folded from the record, so that a restart, and each of several processes, comes to the same numbers. A walk
    goes from the newest incident down to where the walk before it began, a few pages at each scrape; ``registry`` means
    something once ``complete`` is true, after the first. Each scrape also reads what is open and what was open, both
    up to a limit; the rest comes with the next ones. What cannot move any more is forgotten.

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
        self._keys: dict[Key, Key] = {}
        self._open: dict[str, None] = {}  # in the order in which they were looked at
        self._since: datetime | None = None  # down to there the present walk goes
        self._before: datetime | None = None  # there it has come; None where it begins anew
        self._next_since: datetime | None = None
        self.complete = False
        self.registry = CollectorRegistry()
        priced = (m for m in catalogue.HISTORY if price is not None or m is not catalogue.MODEL_USD)
        self._series = {metric: _series(metric, self.registry) for metric in priced}
        self._begin_at_zero()

    def read(self, now: datetime) -> OpenIncidents:
        """Count what happened since the last time.

        Args:
            now: The time, UTC.

        Returns:
            What is open.

        Raises:
            DependencyFailed: The store did not answer; what was read is counted, the rest next time.
        """
        with self._lock:
            self._walk(now)
            listed = open_incidents(self._store)
            self._read_open({incident.id: incident for incident in listed.incidents if incident.run == LIVE})
            self._forget()
            return listed

    def _walk(self, now: datetime) -> None:
        for _ in range(PAGES):
            page = self._store.incidents(Query(run=LIVE, since=self._since, before=self._before, limit=PAGE))
            if page and self._before is None:
                newest = min(page[0].opened_at, now) - OVERLAP
                self._next_since = max(newest, self._since or newest)
            for incident in page:
                self._count(incident)
            if len(page) < PAGE:
                self._since, self._before = self._next_since, None
                self.complete = True
                return
            self._before = next_before(page, self._before)

    def _read_open(self, listed: Mapping[str, Incident]) -> None:
        new = [incident for known, incident in listed.items() if known not in self._counted]
        moved = [
            listed[known]
            for known, counted in self._counted.items()  # those first that were counted longest ago
            if known in listed and listed[known].version != counted.version
        ]
        for incident in (*new, *moved)[:MOVED]:
            self._count(incident)
        for known in [known for known in self._open if known not in listed][:LEFT]:
            if (found := self._load(known)) is not None:
                self._count(found)
            else:
                del self._open[known]

    def _forget(self) -> None:
        """Drop the final ones that are listed no more: this walk has passed them, and the next one ends before them."""
        if self._next_since is None:
            return
        for known, counted in list(self._counted.items()):
            passed = self._before is None or counted.opened_at >= self._before
            if counted.final and passed and counted.opened_at < self._next_since:
                del self._counted[known]

    def _load(self, incident_id: str) -> Incident | None:
        try:
            return self._store.load(incident_id)
        except NotFound:  # taken away by whoever may: what it added stays
            return None

    def _count(self, incident: Incident) -> None:
        counted = self._counted.get(incident.id)
        if counted is None or counted.version != incident.version:
            self._add(incident, counted.adds if counted is not None else {})
        self._open.pop(incident.id, None)  # only now: what was not read is looked for again
        if not incident.ended:
            self._open[incident.id] = None

    def _add(self, incident: Incident, before: Mapping[Key, float]) -> None:
        adds = {} if incident.request is not None else dict(self._adds(incident))
        for (metric, labels), value in adds.items():
            series = self._series[metric].labels(*labels)
            if metric.kind is Kind.HISTOGRAM:
                if (metric, labels) not in before:
                    series.observe(value, _exemplar(incident))
            elif value > before.get((metric, labels), 0.0):
                series.inc(value - before.get((metric, labels), 0.0))
        self._keep(incident, before, adds)

    def _keep(self, incident: Incident, before: Mapping[Key, float], adds: Mapping[Key, float]) -> None:
        """Keep what a later move needs; the keys are shared by all."""
        self._counted.pop(incident.id, None)  # to the end
        added = {
            self._keys.setdefault(key, key): value
            for key, value in {**before, **adds}.items()
            if value or key[0].kind is Kind.HISTOGRAM
        }
        final = incident.ended and (incident.request is not None or not NEXT[incident.phase])
        self._counted[incident.id] = _Counted(incident.version, incident.opened_at, final, added)

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
