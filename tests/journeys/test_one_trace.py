"""One incident is one trace: from the log event to the verified change, seen whole by a receiver of OTLP."""

import json
import time
from pathlib import Path

import pytest
from prometheus_client.openmetrics.exposition import generate_latest

from agent.core.change.verification import Verdict
from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.entrypoints.metrics.history import History
from agent.entrypoints.service import entry_message
from agent.ports.bus import Topic
from agent.settings import read_settings
from tests.otlp_receiver import OtlpReceiver, orphans, wait_for_senders

PROBE = "gemma4-26b-l4-startup-probe"
FOREIGN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def receiver(monkeypatch):
    opened = OtlpReceiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", opened.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # tries end soon; longer than any step waits for them
    yield opened
    opened.stop()
    wait_for_senders()


@pytest.fixture
def traced(journey, receiver):
    made = []

    def make(example, **overrides):
        made.append(journey(example, otlp_endpoint=receiver.url, **overrides))
        return made[-1]

    yield make
    for told in made:
        told.installation.tracer.close()


def arrived(told, receiver):
    told.installation.tracer.flush()
    return receiver.spans


def named(spans, name):
    return [span for span in spans if span.name == name]


def above(spans, span):
    by_id = {one.id: one for one in spans}
    while span.parent:
        span = by_id[span.parent]
        yield span.name


def test_from_the_log_event_to_the_verified_change(traced, receiver):
    """Each step that did something is a span of one trace, below the delivery that opened the incident."""
    told = traced(PROBE)
    told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
    done = told.until(lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED)
    spans = arrived(told, receiver)
    assert {span.trace for span in spans} == {done.traceparent.split("-")[1]}
    assert orphans(spans) == []
    (root,) = [span for span in spans if not span.parent]
    assert root.name == "process sre-log-events"
    assert {span.name for span in spans} == {
        *("process sre-log-events", "signal_to_incident"),
        *("process sre-incidents", "incident_to_diagnosis", "diagnosis_to_plan", "ask", "plan_to_decision"),
        *("process sre-decisions", "begin_execution", "call_platform", "platform apply"),
        *("tick", "watch_operation", "execution_to_verification", "observe", "verification_to_outcome"),
    }
    (decided,) = named(spans, "plan_to_decision")
    assert (decided.attributes["sre_agent.channel"], decided.attributes["sre_agent.answer"]) == (
        "command_line",
        "approve",
    )
    (applied,) = named(spans, "platform apply")
    assert list(above(spans, applied))[:4] == [
        *("call_platform", "process sre-decisions", "plan_to_decision", "signal_to_incident")
    ]
    about = {span.attributes["sre_agent.incident"] for span in spans if "sre_agent.incident" in span.attributes}
    assert about == {done.id}
    assert {span.resource["service.name"] for span in spans} == {"sre-agent"}
    assert len(spans) < 60, "a poll that found nothing new is no span"


def test_the_metrics_name_the_trace(traced):
    """An exemplar of each histogram leads from a slow recovery to what was done in it; the plain form has none."""
    told = traced(PROBE)
    incident = told.until(lambda i: i.phase is Phase.ASKED)
    history = History(told.installation.store, [incident.service])
    history.read(told.clock.now())
    text = generate_latest(history.registry).decode()
    assert f'# {{trace_id="{incident.traceparent.split("-")[1]}"}}' in text


def test_a_rejected_plan_and_the_next_one_stay_in_the_trace(traced, receiver):
    told = traced(PROBE)
    told.answer(
        told.until(lambda i: i.phase is Phase.ASKED).plan.id, Choice.REJECT, why="Bearer sk-live-0123456789abcdef"
    )
    ended = told.until(lambda i: i.ended or i.plans_made > 1)
    spans = arrived(told, receiver)
    assert {span.trace for span in spans} == {ended.traceparent.split("-")[1]}
    assert orphans(spans) == []
    assert named(spans, "outcome_to_plan")
    assert "sk-live" not in repr(spans)
    assert "ada" not in repr([list(span.attributes.values()) for span in spans])


def test_a_sender_decides_neither_trace_nor_sampling(traced, receiver):
    """A foreign traceparent is a link of the new trace; a malformed one is not even that."""
    told = traced(PROBE)
    while told.installation.queue.pull(f"{Topic.LOG_EVENTS}-sub", 10):
        pass  # what the example published is ours for a minute: the same entries come with a word of their sender
    folder = told.installation.settings.platform.removeprefix("rehearsal:")
    entry = json.loads((Path(folder) / "events.jsonl").read_text().splitlines()[0])
    told.installation.bus.publish(entry_message(entry, attributes={"traceparent": FOREIGN}))
    told.work()
    (incident,) = told.incidents()
    foreign = FOREIGN.split("-")[1]
    spans = arrived(told, receiver)
    (root,) = [span for span in spans if not span.parent]
    assert root.links == [foreign]
    assert foreign not in {span.trace for span in spans} | {incident.traceparent.split("-")[1]}


def test_without_the_setting_nothing_of_it_is_kept(journey):
    """No field is written and no attribute sent; the trace of the next function would not know of any."""
    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    assert asked.traceparent == ""
    assert read_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}).otlp_endpoint is None


@pytest.mark.parametrize("status", [None, 503, 404], ids=["hangs", "overloaded", "no such path"])
def test_a_collector_that_fails_delays_no_incident(traced, receiver, status):
    """It hangs, or refuses: the incident ends as without it, and the end of a function waits half a second at most."""
    receiver.status = status
    told = traced(PROBE)
    tracer = told.installation.tracer
    opened = told.until(lambda i: i.phase is Phase.ASKED)
    began = time.monotonic()
    for _ in range(5):
        tracer.flush()
        told.go(1)
    assert time.monotonic() - began < 5
    told.answer(opened.plan.id)
    done = told.until(lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED)
    assert receiver.posts, "it was tried"
    assert receiver.spans == []
