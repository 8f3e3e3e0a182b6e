"""The exposition: what stands at the scrape, and what was counted, written by prometheus_client."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import LIVE
from agent.entrypoints.metrics import catalogue
from agent.entrypoints.metrics.catalogue import class_label, service_label
from agent.entrypoints.metrics.history import History
from agent.entrypoints.metrics.incident_pages import OpenIncidents
from agent.ports.stage_context import StageContext


def _nothing() -> Mapping[str, int]:
    return {}


def _unknown() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What an exposition is made from.

    Attributes:
        context: The ports; the stores are read.
        history: The counters.
        stopped: Why no change may begin, or that nobody knows; empty where changes may begin.
        queue_age_s: Age of the oldest waiting message; None where the bus does not say.
        waiting: Messages that wait, by subscription.
        dead_letters: How many there are; None where that is not known here.
    """

    context: StageContext
    history: History
    stopped: Callable[[], str]
    queue_age_s: Callable[[], float | None] = _unknown
    waiting: Callable[[], Mapping[str, int]] = _nothing
    dead_letters: Callable[[], int | None] = _unknown


def exposition(sources: Sources, accept: str = "") -> tuple[bytes, str]:
    """Return the text and its content type.

    Args:
        sources: What it is made from.
        accept: The header with which the scraper says what it reads.

    Raises:
        DependencyFailed: A store did not answer; half an exposition would look like a drop.
    """
    still_open = sources.history.read(sources.context.clock.now())
    registry = CollectorRegistry()
    registry.register(_Families(list(_present(sources, still_open))))
    if sources.history.complete:
        registry.register(_Families(sources.history.registry.collect()))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _present(sources: Sources, still_open: OpenIncidents) -> Iterator[Metric]:
    context = sources.context
    yield _family(catalogue.TRUNCATED, {(): float(still_open.truncated)})
    yield from _incidents(still_open.incidents, now=context.clock.now(), watched=_watched(context))
    age_s, letters = sources.queue_age_s(), sources.dead_letters()
    if age_s is not None:
        yield _family(catalogue.QUEUE_AGE, {(): age_s})
    yield _family(catalogue.QUEUE, {(name.removesuffix("-sub"),): count for name, count in sources.waiting().items()})
    if letters is not None:
        yield _family(catalogue.DEAD_LETTERS, {(): letters})
    yield _family(catalogue.DRIFT, dict(_drift(context)))
    yield _family(catalogue.KILL_SWITCH, {(): float(bool(sources.stopped()))})
    yield _family(catalogue.COUNTED, {(): float(sources.history.complete)})


def _incidents(found: Iterable[Incident], *, now: datetime, watched: frozenset[str]) -> Iterator[Metric]:
    troubles: Counter[tuple[str, ...]] = Counter()
    requests: Counter[tuple[str, ...]] = Counter()
    asked: list[float] = []
    for incident in found:
        if incident.phase is Phase.ASKED:
            asked.append(max(0.0, (now - incident.phase_at).total_seconds()))
        if incident.request is not None:
            requests[(incident.phase.value,)] += 1
            continue
        run = "live" if incident.run == LIVE else "replay"
        of = service_label(incident.service, watched)
        troubles[of, incident.phase.value, class_label(incident.cause), run] += 1
    yield _family(catalogue.INCIDENTS, troubles)
    yield _family(catalogue.REQUESTS, requests)
    yield _family(catalogue.WAITING, {(): len(asked)})
    yield _family(catalogue.WAITING_S, {(): max(asked, default=0.0)})


def _drift(context: StageContext) -> Iterator[tuple[tuple[str, ...], float]]:
    if context.service_records is None:
        return
    for service in sorted(_watched(context)):
        record = context.service_records.service_record(service)
        if record is not None:
            yield (service,), len(record.drift)


def _watched(context: StageContext) -> frozenset[str]:
    return frozenset(service.name for service in context.rules.services.services)


def _family(metric: catalogue.Metric, values: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family
