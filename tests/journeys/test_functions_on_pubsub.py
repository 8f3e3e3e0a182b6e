"""The journey on real parts: Google's emulator pushes recorded entries to the functions, each in a process of its own."""

import base64
import json
import re
from pathlib import Path

import pytest

from agent.core.change.verification import Verdict
from agent.core.incident.phase import Phase
from tests.free_port import free_port
from tests.journeys.deployed import Deployed
from tests.otlp_receiver import OtlpReceiver, orphans
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "gemma4-26b-l4-startup-probe"
SERVICE = "gemma4-26b-qat-l4"
SECRET = "a-secret-of-alertmanager"
FAST = {"REHEARSAL_COMPRESSION": "600", "INGEST_SECRETS": f"alertmanager={SECRET}"}

pytestmark = [pytest.mark.emulator, pytest.mark.xdist_group("emulator")]


@pytest.fixture
def receiver(monkeypatch):
    opened = OtlpReceiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", opened.url)
    yield opened
    opened.stop()


@pytest.fixture
def deployed(pubsub_emulator, pubsub_project, tmp_path, receiver):
    words = FAST | {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    running = Deployed(pubsub_emulator, pubsub_project, tmp_path, EXAMPLE, free_port, **words)
    yield running
    running.stop()


def passes_the_sink(entry):
    """What a sink lets through that is set up by text and severity; phase lines and tracebacks never arrive."""
    log = entry["logName"].rpartition("/")[2]
    status = entry.get("protoPayload", {}).get("status", {}).get("message", "")
    if log == "run.googleapis.com%2Fvarlog%2Fsystem":
        return entry["severity"] in {"WARNING", "ERROR", "CRITICAL"}
    if log == "cloudaudit.googleapis.com%2Fsystem_event":
        return "Ready condition status changed to False for Revision" in status
    return bool(re.search("No available memory|OutOfMemoryError|Engine core init", entry.get("textPayload", "")))


def recorded():
    lines = (ROOT / "examples" / EXAMPLE / "events.jsonl").read_text().splitlines()
    return [entry for line in lines if line.strip() and passes_the_sink(entry := json.loads(line))]


@pytest.mark.journey
def test_a_failed_rollout_ends_resolved(deployed, journey, receiver):
    """Sink, intake, diagnosis, plan, one signed approval, one revision, verified; every stage wrote its one event.

    The functions say what the same service in memory says: the instance's own log, which no sink lets through, is read.
    """
    twin = journey(EXAMPLE).until(lambda i: i.phase is Phase.ASKED)
    for entry in recorded():
        deployed.sink(entry)
    asked = deployed.until(lambda i: i.phase is Phase.ASKED)
    assert (asked.diagnosis.class_, asked.diagnosis.certain) == (twin.diagnosis.class_, twin.diagnosis.certain)
    assert asked.plan.actions == twin.plan.actions
    assert [action.kind for action in asked.plan.actions][:1] == ["set_startup_probe"]
    deployed.approve(asked.plan.id)
    done = deployed.until(lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED)
    assert len(deployed.incidents()) == 1
    live = deployed.outside.environment.rehearsal.describe(SERVICE)
    assert live.ready is True
    assert len(live.stamps) == 1
    assert deployed.outside.quarantine.rows() == ()
    assert deployed.outside.store.unsent() == ()
    check_the_logs(deployed, done)
    check_the_page(deployed, done)
    check_the_trace(deployed, done, receiver)


def check_the_logs(deployed, incident):
    """Each function's output is Cloud Logging JSON; each stage that ran is told by its owner."""
    stages = {}
    for name, function in deployed.functions.items():
        told, other = function.told()
        assert other == [], f"{name} wrote lines that are no JSON"
        assert all(event["severity"] in {"INFO", "WARNING"} for event in told), told
        for event in told:
            if event["message"] == "stage.finished":
                stages.setdefault(event["stage"], set()).add(name)
                labels = event["logging.googleapis.com/labels"]
                assert labels["stage"] == event["stage"]
                assert labels.get("incident", incident.id) == incident.id
    assert stages == {
        "signal_to_incident": {"on_log_event"},
        "incident_to_diagnosis": {"on_incident"},
        "diagnosis_to_plan": {"on_incident"},
        "ask": {"on_incident"},
        "begin_execution": {"on_decision"},
        "call_platform": {"on_decision"},
        "watch_operation": {"on_tick"},
        "execution_to_verification": {"on_tick"},
        "verification_to_outcome": {"on_tick"},
    }


def check_the_trace(deployed, incident, receiver):
    """Four functions and who decided sent the spans of one trace, whose every parent arrived; each log line names it."""
    deployed.decider.tracer.flush()
    roles = {"on_log_event", "on_incident", "decide", "on_decision", "on_tick"}
    until(lambda: {span.resource["sre_agent.role"] for span in receiver.spans} == roles and not orphans(receiver.spans))
    spans = receiver.spans
    trace = incident.traceparent.split("-")[1]
    assert {span.trace for span in spans} == {trace}
    assert [span.name for span in spans if not span.parent] == ["process sre-log-events"]
    assert {span.attributes["messaging.system"] for span in spans if span.name.startswith("process")} == {"gcp_pubsub"}
    told, _ = deployed.functions["on_incident"].told()
    assert {event["trace_id"] for event in told if event["message"] == "stage.finished"} == {trace}


def check_the_page(deployed, incident):
    status, page = deployed.functions["console"].get(f"/incidents/{incident.id}")
    assert status == 200
    assert SERVICE in page


def test_an_alert_of_a_sender_that_cannot_publish_opens_an_incident(deployed):
    """Posted to `ingest`, confirmed by Pub/Sub before its 200, pushed to `on_alert`; a wrong secret publishes nothing."""
    alert = json.loads((ROOT / "tests/data/samples/alertmanager_webhook_v4.json").read_text())
    for one in alert["alerts"]:
        one["labels"] |= {"service_name": SERVICE, "service": SERVICE, "job": SERVICE}
    body = json.dumps(alert).encode()
    ingest = deployed.functions["ingest"]
    assert ingest.post(body, "/alertmanager", {"X-Sre-Secret": "not-the-secret-of-it"})[0] == 401
    assert ingest.post(body, "/nobody", {"X-Sre-Secret": SECRET})[0] == 401
    assert ingest.post(b"{", "/alertmanager", {"X-Sre-Secret": SECRET})[0] == 400
    assert ingest.post_head(1_100_000, "/alertmanager", {"X-Sre-Secret": SECRET}) == 413
    assert deployed.incidents() == []
    status, said = ingest.post(body, "/alertmanager", {"X-Sre-Secret": SECRET})
    assert (status, said.split()[0]) == (200, "accepted")
    opened = deployed.until(lambda i: i.diagnosis is not None)
    assert opened.service == SERVICE
    told, _ = deployed.functions["on_alert"].told()
    assert {event["stage"] for event in told if event["message"] == "stage.finished"} == {"signal_to_incident"}


def test_one_trace_can_be_followed_from_the_first_request_to_the_next_function(deployed):
    """The request's own trace in its log; the trace of the beginning as a label there and in the function it woke."""
    trace = "0af7651916cd43dd8448eb211c80319c"
    message = {"data": base64.b64encode(json.dumps(recorded()[0]).encode()).decode(), "messageId": "1"}
    body = json.dumps({"message": message, "subscription": "s"}).encode()
    intake = deployed.functions["on_log_event"]
    assert intake.post(body, headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"}) == (200, "ack")
    deployed.until(lambda i: i.diagnosis is not None, ticks=False)  # a tick might wake the next function first
    deployed.until(lambda i: i.phase is Phase.ASKED)  # what came before has been written by then
    (event,) = [e for e in intake.told()[0] if e["message"] == "stage.finished"]
    assert event["logging.googleapis.com/trace"] == f"projects/{deployed.project}/traces/{trace}"
    assert event["logging.googleapis.com/spanId"] == "b7ad6b7169203331"
    woken = [e for e in deployed.functions["on_incident"].told()[0] if e.get("stage") == "incident_to_diagnosis"]
    assert trace in {e["logging.googleapis.com/labels"].get("origin") for e in woken}
