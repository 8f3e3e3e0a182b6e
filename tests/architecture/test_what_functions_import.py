"""A cold start pays for every import: what each function may have loaded once it has answered."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
HEAVY = {"openai", "google.cloud.logging", "google.cloud.logging_v2", "google.cloud.run_v2", "slack_sdk", "sqlalchemy",
         "kubernetes", "azure", "google.cloud.tpu_v2"}  # fmt: skip
NOT_INTAKE = {
    *HEAVY,
    *("agent.stages.advance", "agent.stages.decision_to_execution", "agent.stages.incident_to_diagnosis"),
    *("agent.adapters.platform", "agent.adapters.logs", "agent.adapters.model", "agent.catalogue.load_fit"),
    *("google.pubsub_v1", "google.api_core", "proto"),  # 0.2 s; one call is made without them
    *("opentelemetry", "agent.adapters.tracing"),  # no collector is named
    "rich",  # a tenth of the start; structlog takes it along where it is not kept from it
}
PROGRAM = """
import base64, json, sys
from functions_framework import create_app
name, source, entry = sys.argv[1:]
client = create_app(name, source, "http").test_client()
if name == "ingest":
    answer = client.post("/alertmanager", data=entry, headers={"X-Sre-Secret": "0123456789abcdef"})
else:
    message = {"data": base64.b64encode(entry.encode()).decode(), "messageId": "1"}
    answer = client.post("/", json={"message": message, "subscription": "s"})
from agent.adapters.bus.pubsub import _client
_client("127.0.0.1:9")
print(json.dumps([answer.status_code, answer.get_data(as_text=True), sorted(sys.modules)]))
"""


def answered(name, entry, folder):
    """Let a function answer in a process of its own; return what it said and what it has loaded."""
    environ = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environ |= {"PYTHONPATH": str(ROOT), "STORE": f"sqlite:{folder / 'state'}", "PLATFORM": f"rehearsal:{EXAMPLE}"}
    environ |= {"INGEST_SECRETS": "alertmanager=0123456789abcdef"}
    command = [sys.executable, "-c", PROGRAM, name, str(ROOT / "functions" / f"{name}.py"), entry]
    ran = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


def loaded(names, modules):
    return {name for name in names if any(m == name or m.startswith(f"{name}.") for m in modules)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["on_log_event", "on_alert"])
def test_the_intake_loads_nothing_that_it_has_no_use_for(name, tmp_path):
    """Not the model's client, not Cloud Logging's, not Cloud Run's, and no stage but its own."""
    entry = (EXAMPLE / "events.jsonl").read_text().splitlines()[0]
    status, said, modules = answered(name, entry, tmp_path)
    assert (status, said) == (200, "ack")
    assert loaded(NOT_INTAKE, modules) == set()
    assert "grpc" in modules, "the bus was loaded, so that the list above says something"


@pytest.mark.slow
def test_ingest_loads_no_stage(tmp_path):
    alert = json.loads((ROOT / "tests/data/samples/alertmanager_webhook_v4.json").read_text())
    alert["alerts"][0]["labels"]["service"] = "gemma4-26b-qat-l4"
    status, said, modules = answered("ingest", json.dumps(alert), tmp_path)
    assert (status, said) == (200, "accepted 1\n")
    assert loaded({*NOT_INTAKE, "agent.stages.signal_to_incident"}, modules) <= {"agent.stages.signal_to_incident"}
    assert loaded(HEAVY, modules) == set()


NOT_LISTED = {
    *("structlog", "rich.table"),
    *(f"agent.{name}" for name in ("app", "catalogue", "failures", "stages", "presentation", "core.incident")),
}
TOOLS = """
import json, sys
from agent.entrypoints.mcp.open_tools import open_tools
from agent.entrypoints.mcp.server import build_server
build_server(open_tools(), version="0")
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.slow
def test_the_list_of_tools_loads_nothing_that_only_a_call_needs():
    """A client of the MCP server waits for the list (P15)."""
    pytest.importorskip("mcp")
    ran = subprocess.run([sys.executable, "-c", TOOLS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded(NOT_LISTED, json.loads(ran.stdout)) == set()
