"""One failed rollout, heard in every order and twice, is one incident with the same end."""

import copy
import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.core.incident.incident import Incident
from agent.core.service.services import parse_services
from agent.entrypoints.cli.analysis import Analysis, analysis
from agent.settings import read_settings

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
SERVICES = """
[[service]]
name = "gemma4-vllm"
platform = "cloud_run"
project = "example-project"
location = "us-central1"
model = "google/gemma-4-12B-it-qat-w4a16-ct"
accelerator = "nvidia-l4"
owner = "console"
"""
LABELS = {
    "project_id": "example-project",
    "location": "us-central1",
    "service_name": "gemma4-vllm",
    "revision_name": "gemma4-vllm-00007-abc",
    "configuration_name": "gemma4-vllm",
}
KV = (
    "ValueError: To serve at least one request with the model's max seq len (131072), (4.0 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (1.0 GiB). Based on the available memory, the estimated "
    "maximum model length is 32640. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when "
    "initializing the engine."
)


def entry(log: str, second: int, **payload: Any) -> dict[str, Any]:
    return {
        "logName": f"projects/example-project/logs/{log}",
        "insertId": f"{second:024x}",
        "timestamp": f"2026-11-21T02:59:{second:02d}.500000Z",
        "resource": {"type": "cloud_run_revision", "labels": dict(LABELS)},
        "labels": {"instanceId": "i-1", "container_name": "gemma4-vllm-1"},
        **payload,
    }


TRACEBACK = entry("run.googleapis.com%2Fstderr", 10, textPayload=f"(EngineCore pid=372) {KV}")
INIT = entry(
    "run.googleapis.com%2Fstderr",
    12,
    textPayload="RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
)
EXIT = entry("run.googleapis.com%2Fvarlog%2Fsystem", 14, severity="WARNING", textPayload="Container called exit(1).")
PROBE = entry(
    "run.googleapis.com%2Fvarlog%2Fsystem",
    15,
    severity="ERROR",
    textPayload='Default STARTUP TCP probe failed 1 time consecutively for container "gemma4-vllm-1" on port 8080. '
    "The instance was not started. Connection failed with status CANCELLED.",
)
AUDIT = entry(
    "cloudaudit.googleapis.com%2Fsystem_event",
    16,
    severity="ERROR",
    protoPayload={
        "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
        "serviceName": "run.googleapis.com",
        "methodName": "/Services.UpdateService",
        "resourceName": "namespaces/example-project/revisions/gemma4-vllm-00007-abc",
        "status": {
            "code": 9,
            "message": "Ready condition status changed to False for Revision gemma4-vllm-00007-abc with message: "
            "The user-provided container failed to start and listen on the port defined provided by the PORT=8080 "
            "environment variable within the allocated timeout.",
        },
    },
)
EVENTS = {"traceback": TRACEBACK, "init": INIT, "exit": EXIT, "probe": PROBE, "audit": AUDIT}


def heard(order: tuple[str, ...]) -> Analysis:
    """Feed the events in this order, each twice, and let it settle."""
    services = parse_services(SERVICES)
    settings = read_settings({}, platform="none")
    with analysis(settings, run="r", now=NOW, services=services) as told:
        for name in order:
            for _ in range(2):
                told.app.bus.publish(message(EVENTS[name]))
                told.drive()
        told.settle()
        return told


REPEATED = itertools.count(1)


def message(event: dict[str, Any]):
    """The same entry under a new id, as a sink that exports twice would publish it."""
    from agent.entrypoints.service import entry_message

    made = entry_message(copy.deepcopy(event), attributes={"run": "r"})
    return made.with_(id=f"{made.id}-{next(REPEATED)}")


def seen(incident: Incident) -> dict[str, Any]:
    """What may not depend on the order: everything but ids and the times of arrival."""
    assert incident.diagnosis is not None
    assert incident.plan is not None
    return {
        "phase": incident.phase,
        "revision": incident.revision,
        "count": incident.signal_count,
        "joined": [j.model_dump() for j in incident.correlated],
        "diagnosis": incident.diagnosis.model_dump(exclude={"made_at"}),
        "proposal": incident.plan.proposal,
    }


def once_in_order() -> dict[str, Any]:
    (incident,) = heard(tuple(EVENTS)).incidents()
    return seen(incident)


@pytest.fixture(scope="module")
def wanted() -> dict[str, Any]:
    return once_in_order()


def test_in_order_it_is_the_first_cause_with_its_consequences(wanted: dict[str, Any]) -> None:
    """The key-value cache is the cause; probe, exit and audit entry are named as its consequences."""
    assert wanted["diagnosis"]["class_"] == "kv_cache_insufficient"
    reasons = {j["signal"]: j["reason"] for j in wanted["joined"]}
    assert reasons["s1"].startswith("first signal of the cause")
    assert len(reasons) == 5
    assert all(r.startswith("consequence of s1") for s, r in reasons.items() if s != "s1"), reasons


@pytest.mark.parametrize("first", sorted(EVENTS))
def test_every_order_and_repetition_ends_the_same(first: str, wanted: dict[str, Any]) -> None:
    """All 120 permutations, each event twice: one incident, the same words."""
    for rest in itertools.permutations([name for name in EVENTS if name != first]):
        found = heard((first, *rest)).incidents()
        assert len(found) == 1, (first, *rest)
        assert seen(found[0]) == wanted, (first, *rest)
