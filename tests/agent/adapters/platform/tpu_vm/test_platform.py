"""TPU nodes on the real wire: somebody else's change, states of queued resources, and what is refused."""

import json
import time
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from google.cloud import tpu_v2

from agent.adapters.platform.tpu_vm.api import RIGHTS, TpuApi, client_over
from agent.core.plan.action import Lifecycle, LifecycleOperation, SetFlag
from agent.core.service.serving import ServingConfig
from agent.errors import CredentialsRefused, DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.model_server import NotRunning
from agent.ports.platform import NotDeployed, Order
from tests.contracts.tpu_world import PARENT, TpuWorld, queued_of
from tests.leases import HELD

CONFIG = ServingConfig(image="vllm/vllm-tpu:nightly", args=("serve", "m", "--max-model-len", "8192"), max_instances=1)
GOOD = SetFlag(name="max-model-len", value="4096")
DELETE = Lifecycle(operation=LifecycleOperation.DELETE, confirmed="gemma")
QUEUED = f"{PARENT}/queuedResources/gemma-qr"


@pytest.fixture
def world(tmp_path: Path):
    """A node that serves."""
    made = TpuWorld(tmp_path, "gemma", CONFIG)
    yield made
    made.close()


def order(world: TpuWorld, *actions, key: str = "k1", etag: str | None = None) -> Order:
    return Order(
        service="gemma",
        incident="inc-1",
        effect_key=key,
        revision=f"gemma-sre-{key}",
        etag=etag or world.platform.describe("gemma").etag,
        actions=actions or (GOOD,),
        lease_end=HELD,
    )


def metadata(world: TpuWorld):
    return world.cloud.nodes[world.name].metadata


def updates(world: TpuWorld) -> int:
    return world.cloud.calls.count("UpdateNode")


def test_hardware_and_address_are_the_nodes(world: TpuWorld) -> None:
    live = world.platform.describe("gemma")
    assert (live.config.accelerator, live.config.accelerator_count) == ("tpu-v6e", 4)
    assert live.url == f"http://127.0.0.1:{world.config.args[-1]}"
    node = world.cloud.nodes[world.name]
    node.accelerator_type = ""
    node.accelerator_config = tpu_v2.AcceleratorConfig(type_=tpu_v2.AcceleratorConfig.Type.V5LITE_POD, topology="2x4")
    config = world.platform.describe("gemma").config
    assert (config.accelerator, config.accelerator_count) == ("tpu-v5e", 8)


def test_a_change_keeps_all_other_metadata(world: TpuWorld) -> None:
    """Keys of people and their scripts stay as they are, whoever wrote them since."""
    metadata(world)["added"] = "by somebody"
    before = dict(metadata(world))
    world.platform.apply(order(world))
    after = dict(metadata(world))
    ours = {"vllm-server", "sre-agent-effects"}
    assert {k: v for k, v in after.items() if k not in ours} == {k: v for k, v in before.items() if k not in ours}


OTHERS = {
    "other flags": lambda m: m.update({"vllm-server": m["vllm-server"].replace("8192", "2048")}),
    "another startup script": lambda m: m.update({"startup-script": m["startup-script"] + "# more\n"}),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS.keys())
def test_somebody_elses_change_in_between_is_kept(world: TpuWorld, change) -> None:
    """What was approved was another state: nothing is written."""
    stale = order(world)
    change(metadata(world))
    before = dict(metadata(world))
    with pytest.raises(StateConflict):
        world.platform.apply(stale)
    assert (dict(metadata(world)), updates(world)) == (before, 0)


def test_an_answer_that_was_lost_is_one_change(world: TpuWorld) -> None:
    """Cloud TPU carried it out and did not say so: the stamp says it, and nothing is sent again."""
    one = order(world)
    world.cloud.lose["UpdateNode"] = grpc.StatusCode.UNAVAILABLE
    with pytest.raises(DependencyFailed):
        world.platform.apply(one)
    found = world.platform.find("gemma", "k1")
    assert found is not None
    assert world.platform.apply(one).name == found.name
    world.wait()
    assert (updates(world), len(world.docker_calls("run"))) == (1, 2)


def test_a_report_that_is_old_proves_nothing(world: TpuWorld) -> None:
    """A node whose script fell silent is not called ready."""
    status = json.loads(world.cloud.guest["sre-agent/status"])
    world.cloud.guest["sre-agent/status"] = json.dumps(status | {"at": int(time.time() - 700)})
    live = world.platform.describe("gemma")
    assert live.ready is None
    assert live.message.startswith("the node has reported nothing for 12 minutes; then: ")
    with pytest.raises(NotRunning):
        world.platform.server("gemma")


UNREPORTED = {
    "no report": lambda w: w.cloud.guest.clear(),
    "a report that is no JSON": lambda w: w.cloud.guest.update({"sre-agent/status": "ready"}),
    "a report of another protocol": lambda w: w.cloud.guest.update({"sre-agent/status": '{"protocol": 2}'}),
    "guest attributes switched off": lambda w: metadata(w).pop("enable-guest-attributes"),
}


@pytest.mark.parametrize("spoil", UNREPORTED.values(), ids=UNREPORTED.keys())
def test_a_node_that_reports_nothing_is_not_called_ready(world: TpuWorld, spoil) -> None:
    spoil(world)
    live = world.platform.describe("gemma")
    assert (live.ready, live.latest_ready_revision) == (None, None)
    assert "the node has reported nothing" in live.message


def test_an_operation_is_open_until_the_node_has_reported(world: TpuWorld) -> None:
    """Without guest attributes nobody knows how a change ended: it is not called done."""
    world.cloud.guest.clear()
    started = world.platform.apply(order(world))
    found = world.platform.operation(started.name)
    assert (found.done, found.ok) == (False, None)


def test_a_script_of_somebody_else_is_read_and_not_changed(world: TpuWorld) -> None:
    """Its flags are known, and a change of it is refused with what to do."""
    metadata(world)["startup-script"] = (
        "#!/bin/bash\ndocker run --net host vllm/vllm-tpu:v1 serve m --max-model-len 1024\n"
    )
    live = world.platform.describe("gemma")
    assert live.config.args == ("serve", "m", "--max-model-len", "1024")
    assert live.ready is None
    with pytest.raises(InputRejected) as refused:
        world.platform.validate(order(world))
    assert str(refused.value) == (
        "the change was refused: the startup script is not the agent's: its flags are read, changes of it are for a person. "
        "Hint: use the startup script of the agent: docs/tpu.md says how"
    )


def test_metadata_that_is_wrong_is_named(world: TpuWorld) -> None:
    metadata(world)["vllm-server"] = '{"revision": "r", "config": {"image": "i", "arguments": []}}'
    with pytest.raises(InputRejected, match=r"config.arguments: Extra inputs are not permitted"):
        world.platform.describe("gemma")


def test_a_node_of_several_workers_is_for_a_person(world: TpuWorld) -> None:
    """A change would reach each worker by itself; which of them serves is not known."""
    endpoints = [tpu_v2.NetworkEndpoint(ip_address="127.0.0.1")] * 4
    world.cloud.nodes[world.name].network_endpoints = endpoints
    with pytest.raises(InputRejected, match="the node has 4 workers, and a change covers one"):
        world.platform.apply(order(world))
    assert updates(world) == 0


@pytest.mark.parametrize("state", ["PREEMPTED", "TERMINATED", "STOPPED", "REPAIRING", "HIDDEN", "UNKNOWN"])
def test_a_node_that_is_not_ready_is_named_and_not_changed(world: TpuWorld, state: str) -> None:
    node = world.cloud.nodes[world.name]
    node.state, node.health_description = tpu_v2.Node.State[state], "taken back"
    live = world.platform.describe("gemma")
    assert live.message == f"the TPU node is {state}: taken back"
    assert (live.ready, live.reconciling) == ((None, True) if state == "REPAIRING" else (False, False))
    with pytest.raises(InputRejected, match=f"the TPU node is {state}"):
        world.platform.apply(order(world))


def waiting(world: TpuWorld, state: str, **more) -> None:
    node = world.cloud.nodes.pop(world.name, None) or tpu_v2.Node(metadata={})
    world.cloud.queued[QUEUED] = queued_of("gemma", node, state, **more)


WHY = {
    "WAITING_FOR_RESOURCES": "is WAITING_FOR_RESOURCES: v6e-4 has no free capacity in southamerica-west1-a; it waits without a limit",
    "PROVISIONING": "is PROVISIONING",
    "FAILED": "is FAILED: no reason given; it holds quota until it is deleted",
    "SUSPENDED": "is SUSPENDED (by the service), it has no node and holds quota until it is deleted",
    "DELETING": "is DELETING",
}


@pytest.mark.parametrize("state", WHY)
def test_a_queued_resource_without_a_node_says_why(world: TpuWorld, state: str) -> None:
    """Its state, why it waits, and whether it holds quota; what it would run is read from its request."""
    initiator = tpu_v2.QueuedResourceState.StateInitiator.SERVICE
    waiting(world, state, state_initiator=initiator)
    live = world.platform.describe("gemma")
    assert live.message == f"queued resource 'gemma-qr' {WHY[state]}"
    assert live.config.args == world.config.args
    assert (live.ready is None) == (state in {"WAITING_FOR_RESOURCES", "PROVISIONING"})


def test_spot_capacity_that_was_taken_back_is_called_so(world: TpuWorld) -> None:
    waiting(world, "SUSPENDED", state_initiator=tpu_v2.QueuedResourceState.StateInitiator.SERVICE)
    world.cloud.queued[QUEUED].spot = tpu_v2.QueuedResource.Spot()
    assert "is SUSPENDED (spot capacity was taken back)" in world.platform.describe("gemma").message


def test_how_long_a_request_waits_is_said(world: TpuWorld) -> None:
    waiting(world, "WAITING_FOR_RESOURCES")
    policy = tpu_v2.QueuedResource.QueueingPolicy(valid_until_duration=timedelta(hours=6))
    world.cloud.queued[QUEUED].queueing_policy = policy
    assert world.platform.describe("gemma").message.endswith("it waits 6.0 h at most")


@pytest.mark.parametrize(
    "state", ["ACTIVE", "ACCEPTED", "WAITING_FOR_RESOURCES", "PROVISIONING", "SUSPENDING", "DELETING"]
)
def test_what_runs_or_may_come_is_never_deleted(world: TpuWorld, state: str) -> None:
    """Nothing is even sent; a replacement can take hours."""
    if state != "ACTIVE":
        waiting(world, state)
    for carry_out in (world.platform.validate, world.platform.apply):
        with pytest.raises(InputRejected, match="only a suspended or failed queued resource without a node is deleted"):
            carry_out(order(world, DELETE))
    assert "DeleteQueuedResource" not in world.cloud.calls


def test_a_suspended_one_that_became_active_is_not_deleted(world: TpuWorld) -> None:
    """Between our look and the call: never by force, so that Cloud TPU itself refuses."""
    waiting(world, "SUSPENDED")

    def active() -> None:
        world.cloud.queued[QUEUED].state = tpu_v2.QueuedResourceState(state=6)

    world.cloud.before["DeleteQueuedResource"] = active
    with pytest.raises(InputRejected, match="is ACTIVE"):
        world.platform.apply(order(world, DELETE))
    assert QUEUED in world.cloud.queued


def test_a_suspended_one_that_was_made_anew_is_not_deleted(world: TpuWorld) -> None:
    """The same name, another request: what was approved was the other one."""
    waiting(world, "SUSPENDED")
    stale = order(world, DELETE)
    world.cloud.queued[QUEUED].create_time = "2026-11-22T10:00:00Z"
    with pytest.raises(StateConflict):
        world.platform.apply(stale)
    assert QUEUED in world.cloud.queued


def test_neither_node_nor_queued_resource_is_not_deployed(world: TpuWorld) -> None:
    waiting(world, "SUSPENDED")
    del world.cloud.queued[QUEUED]
    with pytest.raises(NotDeployed):
        world.platform.describe("gemma")


def test_the_hbm_symptom_that_cloud_tpu_names_is_told(world: TpuWorld) -> None:
    kind = tpu_v2.Symptom.SymptomType.HBM_OUT_OF_MEMORY
    world.cloud.nodes[world.name].symptoms = [tpu_v2.Symptom(symptom_type=kind)]
    assert world.platform.describe("gemma").message.endswith("; Cloud TPU names HBM_OUT_OF_MEMORY")


REFUSED = {
    "UNAVAILABLE": (DependencyFailed, "tried again"),
    "DEADLINE_EXCEEDED": (DependencyFailed, "tried again"),
    "RESOURCE_EXHAUSTED": (DependencyFailed, "tried again"),
    "PERMISSION_DENIED": (PolicyRefused, "tpu.nodes.update"),
    "UNAUTHENTICATED": (CredentialsRefused, "tpu.nodes.update"),
    "INVALID_ARGUMENT": (InputRejected, "make another plan"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_refusal_of_cloud_tpu_is_typed_and_changes_nothing(world: TpuWorld, code: str) -> None:
    """With what to do; the same order goes through afterwards."""
    kind, hint = REFUSED[code]
    one = order(world)
    world.cloud.refuse["UpdateNode"] = (grpc.StatusCode[code], "no")
    with pytest.raises(kind) as refused:
        world.platform.apply(one)
    assert hint in refused.value.hint
    assert world.platform.find("gemma", "k1") is None
    assert world.platform.apply(one).done is False


def test_no_quota_is_called_so(world: TpuWorld) -> None:
    one = order(world)
    says = "Quota exceeded for total allowable count of TPUV6EPerProjectPerZoneForTPUAPI"
    world.cloud.refuse["UpdateNode"] = (grpc.StatusCode.RESOURCE_EXHAUSTED, says)
    with pytest.raises(PolicyRefused) as refused:
        world.platform.apply(one)
    assert "suspended queued resources that hold it" in refused.value.hint


def test_every_call_names_its_right_and_no_right_is_spare(world: TpuWorld) -> None:
    """S20: what docs/tpu.md grants is what the adapter calls, over the wire and in its table."""
    world.platform.apply(order(world))
    waiting(world, "SUSPENDED")
    world.platform.apply(order(world, DELETE, key="k2"))
    called = {f"{method.replace('_', '')}" for method in RIGHTS}
    assert {name.lower() for name in world.cloud.calls} == called
    page = (Path(__file__).resolve().parents[5] / "docs" / "tpu.md").read_text()
    granted = {line.strip()[2:] for line in page.splitlines() if line.strip().startswith("- tpu.")}
    assert granted == set(RIGHTS.values())


def test_a_missing_package_says_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise ImportError

    with pytest.raises(InputRejected, match=r"'google-cloud-tpu' is not installed") as refused:
        TpuApi(absent).node("n")
    assert "[tpu]" in refused.value.hint


def test_a_cloud_that_does_not_answer_is_a_dependency() -> None:
    with grpc.insecure_channel("127.0.0.1:9") as channel, pytest.raises(DependencyFailed):
        TpuApi(lambda: client_over(channel)).node(f"{PARENT}/nodes/gemma")
