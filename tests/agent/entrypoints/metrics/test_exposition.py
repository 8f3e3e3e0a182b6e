"""What a scraper reads: the library's own parser understands it, and it says what stands now."""

from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain

from agent.core.change.config_drift import Drift, ServiceRecord
from agent.core.service.services import Service, Services
from agent.entrypoints.metrics import incident_pages
from agent.entrypoints.metrics.catalogue import HISTORY, PRESENT, Kind
from agent.entrypoints.metrics.exposition import Sources, exposition
from agent.entrypoints.metrics.history import History
from agent.errors import DependencyFailed
from tests.agent.entrypoints.console import scenes

METRICS = (*HISTORY, *PRESENT)
NAME = "gemma-a"


@pytest.fixture
def stage():
    stage = scenes.a_stage()
    service = Service(
        name=NAME, platform="host", model="google/gemma-3-1b-it", accelerator="nvidia-l4", owner="console"
    )
    rules = replace(stage.world.rules, services=Services(services=(service,)))
    return replace(stage, world=replace(stage.world, rules=rules))


def sources(stage, **more):
    given = {"context": stage.world, "history": History(stage.world.store, (NAME,)), "stopped": lambda: ""}
    return Sources(**(given | more))


def samples(text, parse=plain):
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in parse(text.decode()) for s in f.samples}


def test_every_metric_of_the_catalogue_is_written_under_its_name_and_type(stage):
    stage.waiting(NAME)
    every = sources(stage, queue_age_s=lambda: 1.5, waiting=lambda: {"sre-incidents-sub": 3}, dead_letters=lambda: 2)
    text, kind = exposition(every)
    found = {family.name: family.type for family in plain(text.decode())}
    wanted = {m.name.removesuffix("_total"): m.kind.value for m in METRICS if not m.name.startswith("sre_model_cost")}
    assert found == wanted
    assert kind.startswith("text/plain; version=0.0.4")
    assert samples(text)["sre_queue_messages", (("subscription", "sre-incidents"),)] == 3
    assert samples(text)["sre_dead_letters", ()] == 2


def test_open_metrics_is_written_for_whoever_asks_for_it(stage):
    stage.waiting(NAME)
    text, kind = exposition(sources(stage), "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1")
    assert kind.startswith("application/openmetrics-text")
    assert samples(text, open_metrics)["sre_incidents_opened_total", (("service", NAME),)] == 1


def test_a_plan_that_waits_ages(stage):
    stage.waiting(NAME)
    stage.waiting("somebody-elses")
    of = sources(stage)
    stage.clock.step(90)
    found = samples(exposition(of)[0])
    assert found["sre_plans_waiting", ()] == 2
    assert found["sre_plans_waiting_oldest_seconds", ()] == 102  # the second came 12 s later
    assert {dict(labels)["service"] for name, labels in found if name == "sre_incidents"} == {NAME, "other"}


def test_the_oldest_plan_is_found_however_many_opened_since(stage, monkeypatch):
    """It is the one that the alert is about; where the list is cut, a gauge says that it may be missing."""
    monkeypatch.setattr(incident_pages, "OPEN_PAGE", 3)
    stage.waiting(NAME)
    for number in range(8):
        stage.clock.step(100)
        stage.open(f"storm-{number}")
    found = samples(exposition(sources(stage))[0])
    assert found["sre_plans_waiting_oldest_seconds", ()] == 800
    assert found["sre_incidents_truncated", ()] == 0
    monkeypatch.setattr(incident_pages, "OPEN_PAGES", 2)
    assert samples(exposition(sources(stage))[0])["sre_incidents_truncated", ()] == 1


def test_drift_is_counted_for_services_that_were_seen(stage):
    drift = tuple(Drift(path=f"flag --{n}", wanted="1", live="2", against="declared") for n in "ab")
    seen = ServiceRecord(service=NAME, state={}, drift=drift, seen_at=stage.clock.now())
    assert "sre_service_drift{" not in exposition(sources(stage))[0].decode()
    stage.world.service_records.keep_service_record(seen)
    assert samples(exposition(sources(stage))[0])["sre_service_drift", (("service", NAME),)] == 2


@pytest.mark.parametrize(("says", "value"), [("", 0), ("stopped by ada", 1)])
def test_the_kill_switch_is_one_where_nothing_may_change(stage, says, value):
    assert samples(exposition(sources(stage, stopped=lambda: says))[0])["sre_kill_switch", ()] == value


def test_a_store_that_does_not_answer_makes_no_half_exposition(stage, monkeypatch):
    def down(_query):
        raise DependencyFailed("the incidents were not read", why="the store is down", hint="try again")

    of = sources(stage)
    monkeypatch.setattr(stage.world.store, "incidents", down)
    with pytest.raises(DependencyFailed):
        exposition(of)


def test_names_and_labels_follow_the_conventions():
    """Base units, `_total` on counters alone, and no label that free text could fill."""
    assert len({m.name for m in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert metric.name.startswith("sre_")
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        assert (metric.kind is Kind.HISTOGRAM) == bool(metric.buckets)
        assert list(metric.buckets) == sorted(metric.buckets)
        assert set(metric.labels) <= {
            "service", "class", "phase", "run", "outcome", "answer", "verdict", "direction", "subscription",
        }  # fmt: skip
    assert all("service" in m.labels for m in HISTORY)
