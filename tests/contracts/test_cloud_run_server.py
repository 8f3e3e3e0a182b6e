"""The Cloud Run stand-in is held against the recorded bodies, so that what passes against it means something."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from google.api_core import exceptions as api
from google.cloud import run_v2
from google.longrunning import operations_pb2
from google.protobuf import json_format

from agent.adapters.platform.cloud_run.api import clients_over
from tests.contracts import cloud_run_server as server

SAMPLES = Path(__file__).parents[1] / "data" / "samples"
NAME = "projects/example-project/locations/us-central1/services/gemma4-vllm"


def sample(name: str) -> dict:
    return json.loads((SAMPLES / name).read_text())


class Wire:
    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
        self.fate = server.Fate(up=False)
        self.stand_in = server.StandIn(now=lambda: self.time, fate=lambda _: self.fate)
        self.stand_in.start()
        self.channel = self.stand_in.channel()
        self.clients = clients_over(self.channel)

    def get(self):
        return run_v2.Service.pb(self.clients.services.get_service(name=NAME))

    def close(self) -> None:
        self.channel.close()
        self.stand_in.stop()


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.close()


@pytest.mark.parametrize(
    "name", ["run_v2_service_gpu_l4.json", "run_v2_service_gpu_rtx6000.json", "run_v2_service_failed.json"]
)
def test_a_recorded_service_passes_through_the_wire_unchanged(wire: Wire, name: str) -> None:
    """What the real client reads is the recorded body, leaf by leaf."""
    wire.stand_in.put(sample(name))
    want = json_format.ParseDict(sample(name), run_v2.Service.pb(run_v2.Service()))
    assert wire.get() == want


def test_a_failed_rollout_looks_like_the_recorded_one(wire: Wire) -> None:
    """Terminal condition, conditions, both revisions and the operation's error have the recorded shape."""
    wire.stand_in.put(sample("run_v2_service_gpu_l4.json"))
    service = wire.clients.services.get_service(name=NAME)
    service.template.max_instance_request_concurrency = 8
    operation = wire.clients.services.update_service(service=service).operation
    wire.time += timedelta(seconds=400)
    got, want = json_format.MessageToDict(wire.get()), sample("run_v2_service_failed.json")
    for part in ("state", "revisionReason", "type"):
        assert got["terminalCondition"][part] == want["terminalCondition"][part]
    assert [c["type"] for c in got["conditions"]] == [c["type"] for c in want["conditions"]]
    head = want["terminalCondition"]["message"].split(". ")[1]
    assert head in got["terminalCondition"]["message"]
    assert got["latestReadyRevision"] == sample("run_v2_service_gpu_l4.json")["latestReadyRevision"]
    assert got["latestCreatedRevision"] != got["latestReadyRevision"]
    assert got.get("reconciling", False) == want["reconciling"]
    ended = wire.clients.services.get_operation({"name": operation.name})
    failed = sample("run_v2_lro_failed.json")
    assert (ended.done, ended.error.code) == (failed["done"], failed["error"]["code"])
    assert ended.metadata.type_url == failed["metadata"]["@type"]
    assert ended.name.rsplit("/", 1)[0] == failed["name"].rsplit("/", 1)[0]
    assert isinstance(ended, operations_pb2.Operation)


def test_the_recorded_request_that_pins_traffic_is_taken(wire: Wire) -> None:
    """With its mask and its dry run: the template stays, nothing is kept."""
    wire.stand_in.put(sample("run_v2_service_failed.json"))
    before = wire.get()
    body = sample("run_v2_update_traffic_rollback_request.json")
    request = run_v2.UpdateServiceRequest(
        json_format.ParseDict(body, run_v2.UpdateServiceRequest.pb(run_v2.UpdateServiceRequest()))
    )
    answered = wire.clients.services.update_service(request=request).operation
    would = run_v2.Service.pb(run_v2.Service())
    assert answered.response.Unpack(would)
    assert would.template == before.template
    assert would.traffic[0].revision == body["service"]["traffic"][0]["revision"]
    assert wire.get() == before


REFUSED = {
    "stale etag": (lambda s: setattr(s, "etag", '"old"'), api.Aborted),
    "quota": (lambda s: setattr(s.template.scaling, "max_instance_count", 3), api.InvalidArgument),
    "a taken name": (lambda s: setattr(s.template, "revision", "gemma4-vllm-00007-abc"), api.AlreadyExists),
    "a foreign name": (lambda s: setattr(s.template, "revision", "other-1"), api.InvalidArgument),
    "a label's value": (lambda s: s.template.labels.update({"a": "Not Lower"}), api.InvalidArgument),
    "a probe": (lambda s: setattr(s.template.containers[0].startup_probe, "period_seconds", 241), api.InvalidArgument),
    "a shape": (lambda s: s.template.containers[0].resources.limits.update({"memory": "8Gi"}), api.InvalidArgument),
    "a reserved name": (
        lambda s: s.template.containers[0].env.append(run_v2.EnvVar(name="PORT", value="1")),
        api.InvalidArgument,
    ),
    "no such service": (lambda s: setattr(s, "name", NAME + "-2"), api.NotFound),
}


@pytest.mark.parametrize(("change", "kind"), REFUSED.values(), ids=REFUSED)
def test_refusals_come_as_the_clients_own_exceptions(wire: Wire, change, kind) -> None:
    """In a dry run and in earnest alike, and nothing is changed."""
    wire.stand_in.put(sample("run_v2_service_gpu_l4.json"))
    before = wire.get()
    service = wire.clients.services.get_service(name=NAME)
    service.template.session_affinity = True
    change(service)
    for dry in (True, False):
        with pytest.raises(kind):
            wire.clients.services.update_service(
                request=run_v2.UpdateServiceRequest(service=service, validate_only=dry)
            )
    assert wire.get() == before


def test_a_fault_is_for_one_call(wire: Wire) -> None:
    """Scripted once, then the service answers again."""
    wire.stand_in.put(sample("run_v2_service_gpu_l4.json"))
    wire.stand_in.fail("GetService", grpc.StatusCode.PERMISSION_DENIED)
    with pytest.raises(api.PermissionDenied):
        wire.get()
    assert wire.get().name == NAME
