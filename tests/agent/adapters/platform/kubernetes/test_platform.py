"""What is particular to Kubernetes, on a real control plane: one card, a stuck StatefulSet, other writers, refusals."""

import json
import socket
import time

import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.kubernetes.client import KubernetesApi
from agent.adapters.platform.completion import CompletionClient, Outcome
from agent.adapters.platform.kubernetes.measure import Meter
from agent.adapters.platform.kubernetes.platform import KubernetesPlatform
from agent.adapters.platform.kubernetes.pod_http import ApiServerProxy, pod_url, proxy_path
from agent.core.change.verification import Check
from agent.core.plan.action import Lifecycle, LifecycleOperation, Restart, SetFlag, SetScaling, SetStrategy
from agent.core.service.serving import Strategy
from agent.core.value import canonical
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.platform import NotDeployed, Order, Restore
from tests.agent.adapters.platform.kubernetes.seen import seen
from tests.contracts.kube_world import KubeWorld
from tests.contracts.vllm_http import VllmHttp
from tests.leases import HELD
from tests.outside import absent

pytestmark = pytest.mark.xdist_group("kube")

ARGS = ("serve", "google/gemma-3-27b-it", "--max-model-len=8192")
SHORTER = SetFlag(name="max-model-len", value="4096")
LONGER = SetFlag(name="max-model-len", value="65536")  # ends in an out-of-memory kill here
RECREATE = SetStrategy(strategy=Strategy(kind="Recreate"))
DELETE = Lifecycle(operation=LifecycleOperation.DELETE, confirmed="gemma")


@pytest.fixture
def world(kube_cluster):
    """Makes a workload with the one accelerator of its node, and none to spare."""
    made = []

    def make(*, gpus=1, args=ARGS, **how):
        made.append(KubeWorld(kube_cluster(gpus=gpus), "gemma", args, spare=gpus - 1, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


def order(world, *actions, key="k1"):
    live = world.platform.describe("gemma")
    return Order(
        service="gemma",
        incident="i",
        effect_key=key,
        revision=f"gemma-sre-{key}",
        etag=live.etag,
        actions=actions,
        lease_end=HELD,
    )


def undo(world, before, *, key="u1", actions=()):
    live = world.platform.describe("gemma")
    return Restore(
        service="gemma",
        incident="i",
        effect_key=key,
        revision=f"gemma-sre-{key}",
        etag=live.etag,
        template=before.template,
        traffic=traffic(before),
        actions=actions,
        lease_end=HELD,
    )


def traffic(live):
    return canonical([t.model_dump(mode="json") for t in live.traffic]).decode()


def test_one_card_and_a_rolling_update_deadlock_until_the_strategy_frees_it(world):
    """The new pod waits for the card of the old one, says so, and comes up under Recreate."""
    one = world()
    one.cluster.api.patch(one.path, [{"op": "add", "path": "/spec/progressDeadlineSeconds", "value": 2}])
    one.wait()
    first = one.platform.apply(order(one, SHORTER))
    one.wait()
    stuck = one.platform.operation(first.name)
    assert (stuck.done, stuck.ok) == (True, False)
    assert "Insufficient nvidia.com/gpu" in stuck.says
    live = one.platform.describe("gemma")
    assert (live.ready, live.spare_accelerator) == (False, False)
    assert live.config.strategy.needs_spare(1)
    one.platform.apply(order(one, RECREATE, key="k2"))
    one.wait()
    live = one.platform.describe("gemma")
    assert (live.ready, live.config.strategy.kind) == (True, "Recreate")
    assert live.latest_ready_revision == "gemma-sre-k2"


def test_an_undo_on_one_card_goes_back_under_recreate_and_then_restores_the_strategy(world):
    """One intent, two calls: the first ends with what remains, and somebody else's change between them is kept."""
    one = world()
    before = one.platform.describe("gemma")
    spec = one.body()["spec"]
    one.platform.apply(order(one, LONGER, RECREATE))
    one.wait()
    back = undo(one, before)
    started = one.platform.restore(back)
    assert not started.remains
    one.wait()
    half = one.open().operation(started.name)
    assert (half.done, half.ok) == (False, True)
    assert half.remains == "the strategy is to be restored: RollingUpdate maxSurge 25% maxUnavailable 25%"
    assert not one.platform.restored("gemma", template=before.template, traffic=traffic(before))
    replicas = one.cluster.api.items(one.cluster.path("replicasets"))
    one.platform.restore(back)
    one.wait()
    ended = one.platform.restore(back)
    assert (ended.name, ended.done, ended.ok, ended.remains) == (started.name, True, True, "")
    assert one.platform.restored("gemma", template=before.template, traffic=traffic(before))
    assert one.body()["spec"] == spec
    assert len(one.cluster.api.items(one.cluster.path("replicasets"))) == len(replicas) == 2


def test_a_strategy_is_not_restored_over_somebody_elses_template(world):
    """Whoever changed the template between the two calls has the last word, and is named."""
    one = world()
    before = one.platform.describe("gemma")
    one.platform.apply(order(one, LONGER, RECREATE))
    one.wait()
    back = undo(one, before)
    one.platform.restore(back)
    one.wait()
    by_hand(one, "--max-model-len=1024")
    found = one.platform.find("gemma", "u1")
    assert (found.done, found.ok) == (True, None)
    assert "'kubectl-edit'" in found.says


def by_hand(world, last):
    """Change the last word of the arguments as a person does."""
    step = {"op": "replace", "path": "/spec/template/spec/containers/0/args/2", "value": last}
    with world.cluster.api.stream(
        "PATCH",
        world.path,
        query={"fieldManager": "kubectl-edit"},
        headers={"Content-Type": "application/json-patch+json"},
        body=[step],
    ):
        pass


def test_an_undo_beside_a_pod_that_serves_does_not_restart_it(world):
    """With a card to spare the old pod served all along, and the former ReplicaSet is used again."""
    one = world(gpus=2)
    before = one.platform.describe("gemma")
    pods = {p["metadata"]["uid"] for p in one.cluster.api.items(one.cluster.path("pods"))}
    one.platform.apply(order(one, LONGER))
    one.wait()
    assert one.platform.describe("gemma").served_by_older == before.latest_ready_revision
    back = one.platform.restore(undo(one, before))
    one.wait()
    assert one.platform.operation(back.name).ok is True
    assert {p["metadata"]["uid"] for p in one.cluster.api.items(one.cluster.path("pods"))} == pods


def test_scaling_restarts_nothing_and_an_undo_of_flags_leaves_it(world):
    """The stamp stands at the object; whoever scaled meanwhile keeps their replicas."""
    one = world(gpus=3)
    pods = {p["metadata"]["uid"] for p in one.cluster.api.items(one.cluster.path("pods"))}
    first = one.platform.apply(order(one, SetScaling(min_instances=2, max_instances=2)))
    one.wait()
    assert one.platform.operation(first.name).ok is True
    assert pods < {p["metadata"]["uid"] for p in one.cluster.api.items(one.cluster.path("pods"))}
    assert [m.good for m in one.platform.measure("gemma", "gemma-sre-k1") if m.check is Check.READY] == [True]
    before = one.platform.describe("gemma")
    one.platform.apply(order(one, LONGER, key="k2"))
    one.wait()
    one.cluster.api.patch(one.path, [{"op": "replace", "path": "/spec/replicas", "value": 1}])
    one.wait()
    one.platform.restore(undo(one, before, actions=(LONGER,)))
    one.wait()
    assert one.body()["spec"]["replicas"] == 1
    assert one.platform.restored("gemma", template=before.template, traffic=traffic(before))


def test_a_stateful_set_does_not_wait_for_its_broken_pod(world):
    """Its controller would wait for ever; the pod of the former template is ours to delete, and the undo works too."""
    one = world(kind="statefulsets")
    before = one.platform.describe("gemma")
    first = one.platform.apply(order(one, LONGER))
    one.wait()
    bad = one.platform.operation(first.name)
    assert (bad.done, bad.ok) == (True, False)
    assert "OOMKilled" in bad.says
    back = one.platform.restore(undo(one, before))
    one.wait()
    assert one.platform.operation(back.name).ok is True
    assert one.platform.restored("gemma", template=before.template, traffic=traffic(before))


class Ended(BaseException):
    """What ends a process between two calls; nothing catches it."""


def ended_before(world, monkeypatch, method, act):
    """Let an effect end right before its first call of that method which changes anything."""
    real = getattr(KubernetesApi, method)

    def sent(api, path, *args, dry_run=False, **how):
        if not dry_run:
            raise Ended
        return real(api, path, *args, dry_run=dry_run, **how)

    with monkeypatch.context() as ends:
        ends.setattr(KubernetesApi, method, sent)
        with pytest.raises(Ended):
            act(world.open())


def test_a_change_that_ended_before_it_deleted_a_broken_pod_goes_on(world, monkeypatch):
    """Its patch names the pod; the same call deletes that very pod, once, and the rollout goes on."""
    one = world(kind="statefulsets", args=(*ARGS[:2], "--max-model-len=65536"))
    wanted = order(one, SHORTER)
    broken = one.cluster.api.items(one.cluster.path("pods"))[0]["metadata"]["uid"]
    ended_before(one, monkeypatch, "delete", lambda platform: platform.apply(wanted))
    half = one.platform.find("gemma", "k1")
    assert (half.done, half.remains) == (False, "pods that hold the rollout up are to be deleted: gemma-0")
    generation = one.body()["metadata"]["generation"]
    assert not one.platform.apply(wanted).remains
    deleted = deletions(monkeypatch)
    one.platform.apply(wanted)
    one.wait()
    assert one.platform.operation(half.name).ok is True
    assert (one.body()["metadata"]["generation"], deleted) == (generation, [])
    assert one.cluster.api.items(one.cluster.path("pods"))[0]["metadata"]["uid"] != broken


def deletions(monkeypatch):
    """Return what is deleted from now on."""
    real, seen = KubernetesApi.delete, []

    def noted(api, path, **how):
        if not how.get("dry_run"):
            seen.append(path)
        return real(api, path, **how)

    monkeypatch.setattr(KubernetesApi, "delete", noted)
    return seen


@pytest.mark.parametrize("labels", [None, {"team": "a"}], ids=["no_labels", "labels"])
@pytest.mark.parametrize("kind", ["deployments", "statefulsets"])
def test_a_deletion_that_ended_after_its_stamp_goes_on(world, monkeypatch, kind, labels):
    """The state that was shown stands as long as nobody else changes it; then the deletion is refused."""
    one = world(kind=kind)
    if labels:
        one.cluster.api.patch(one.path, [{"op": "add", "path": "/metadata/labels", "value": labels}])
    before = one.platform.describe("gemma")
    wanted = order(one, DELETE)
    ended_before(one, monkeypatch, "delete", lambda platform: platform.apply(wanted))
    assert one.body()["metadata"]["labels"] == (labels or {}) | {"sre-agent-deletes": "k1"}
    assert one.platform.find("gemma", "k1") is None
    assert one.platform.describe("gemma").target == before.target
    by_hand(one, "--max-model-len=1024")
    with pytest.raises(StateConflict, match="the change was made for"):
        one.platform.apply(wanted)
    assert "deletionTimestamp" not in one.body()["metadata"]
    again = order(one, DELETE, key="k2")
    ended_before(one, monkeypatch, "delete", lambda platform: platform.apply(again))
    name = one.open().apply(again).name
    one.wait()
    assert one.platform.operation(name).ok is True
    with pytest.raises(NotDeployed):
        one.platform.describe("gemma")


def test_a_status_that_moves_does_not_refuse_a_change(world):
    """A crash-looping pod moves resourceVersion all the time; the generation stays."""
    one = world(args=(*ARGS[:2], "--max-model-len=65536"))
    wanted = order(one, SHORTER, RECREATE)
    version = one.body()["metadata"]["resourceVersion"]
    pod = one.cluster.api.items(one.cluster.path("pods"))[0]
    at = [c["type"] for c in pod["status"]["conditions"]].index("Ready")
    ready = [{"op": "replace", "path": f"/status/conditions/{at}/status", "value": "True"}]
    one.cluster.api.patch(f"{one.cluster.path('pods', pod['metadata']['name'])}/status", ready)
    one.cluster.until(lambda: one.body()["metadata"]["resourceVersion"] != version)
    one.platform.apply(wanted)
    one.wait()
    one.cluster.until(lambda: one.platform.describe("gemma").ready is True)


def test_a_workload_made_again_is_another_one(world):
    """The same name, the same generation, another uid."""
    one = world()
    wanted = order(one, SHORTER)
    body = one.body()
    one.cluster.api.delete(one.path, uid=body["metadata"]["uid"])
    one.wait()
    with pytest.raises(NotDeployed, match='"gemma" not found'):
        one.platform.describe("gemma")
    one.cluster.deploy("gemma", list(ARGS))
    one.wait()
    with pytest.raises(StateConflict, match="the change was made for"):
        one.platform.apply(wanted)


def test_what_the_api_server_refuses_is_told_in_its_words(world):
    """No right, a quota, an autoscaler: each before anything was changed."""
    one = world()
    wanted = order(one, SHORTER)
    with pytest.raises(PolicyRefused, match='User "repairer" cannot get resource "deployments"'):
        one.open("repairer").apply(wanted)
    scaler = {
        "metadata": {"name": "gemma", "labels": {"scaledobject.keda.sh/name": "gemma"}},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gemma"},
        },
    }
    one.cluster.api.create(f"/apis/autoscaling/v1/namespaces/{one.cluster.namespace}/horizontalpodautoscalers", scaler)
    live = one.platform.describe("gemma")
    assert live.scaled_by == "KEDA ScaledObject 'gemma'"
    assert (live.config.min_instances, live.config.max_instances) == (1, 3)
    with pytest.raises(InputRejected, match="belongs to KEDA ScaledObject 'gemma'"):
        one.platform.validate(order(one, SetScaling(min_instances=2, max_instances=2)))
    assert one.body()["metadata"]["generation"] == 1


def test_a_quota_that_leaves_no_room_ends_the_rollout_with_its_words(world):
    """Nothing was made; the ReplicaSet's controller says why."""
    one = world(gpus=2)
    one.cluster.api.patch(one.path, [{"op": "add", "path": "/spec/progressDeadlineSeconds", "value": 2}])
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    one.cluster.api.create(one.cluster.path("resourcequotas"), quota)
    used = one.cluster.path("resourcequotas", "gpus")
    one.cluster.until(
        lambda: one.cluster.api.get(used).get("status", {}).get("used", {}).get("requests.nvidia.com/gpu")
    )
    first = one.platform.apply(order(one, SHORTER))
    one.wait()
    ended = one.platform.operation(first.name)
    assert ended.ok is False
    assert "exceeded quota: gpus" in ended.says


def test_what_another_controller_puts_back_all_the_time_is_not_changed(world):
    """An owner that controls it, such as KServe's InferenceService."""
    one = world()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gemma", "uid": "", "controller": True}
    made = one.cluster.api.create(
        f"/api/v1/namespaces/{one.cluster.namespace}/configmaps", {"metadata": {"name": "gemma"}}
    )
    owner["uid"] = made["metadata"]["uid"]
    one.cluster.api.patch(one.path, [{"op": "add", "path": "/metadata/ownerReferences", "value": [owner]}])
    assert one.platform.describe("gemma").writer.reverts
    with pytest.raises(PolicyRefused, match="the controller of ConfigMap 'gemma'"):
        one.platform.validate(order(one, SHORTER))


def test_a_restart_makes_new_pods_of_the_same_words(world):
    """The stamp alone differs, and a rolling update needs the card that is spare."""
    one = world(gpus=2)
    pods = {p["metadata"]["uid"] for p in one.cluster.api.items(one.cluster.path("pods"))}
    one.platform.apply(order(one, Restart()))
    one.wait()
    assert pods.isdisjoint(p["metadata"]["uid"] for p in one.cluster.api.items(one.cluster.path("pods")))


def own_address():
    """An address of this machine that is not loopback: the API server's proxy refuses to go there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            absent("an address of this machine beside loopback")
        return probe.getsockname()[0]


def test_a_pod_is_asked_through_the_api_servers_proxy(world, monkeypatch):
    """A real completion and its counters, by the real proxy; the server's own refusals and the proxy's are told apart."""
    monkeypatch.setattr("tests.contracts.vllm_http.ADDRESS", own_address())
    server = VllmHttp()
    port = int(server.url.rpartition(":")[2])
    one = world(args=(*ARGS, f"--port={port}"), container={"ports": [{"containerPort": port}]})
    one.cluster.pod_ip = own_address()
    api = one.cluster.open()
    way = ApiServerProxy(api, timeout_s=10)
    client = CompletionClient(id_token=None, monotonic=time.monotonic, http=way)
    platform = KubernetesPlatform(
        {"gemma": one.workload}, lambda _: api, Meter(lambda _: client, proxy_path, SystemClock())
    )
    platform.apply(order(one, Restart()))
    one.platform.apply(order(one, RECREATE, key="k2"))
    one.wait()
    server.script.counter = 100.0
    revision = platform.describe("gemma").latest_ready_revision
    found = {m.check: m for m in platform.measure("gemma", revision)}
    assert found[Check.COMPLETION].good is True, found[Check.COMPLETION].says
    assert found[Check.TOKENS].good is True
    assert "tokens/s" in found[Check.SPEED].says
    server.script.status, server.script.body = 500, json.dumps({"error": "CUDA error"})
    broken = {m.check: m for m in platform.measure("gemma", revision)}
    assert broken[Check.COMPLETION].good is False
    assert "CUDA error" in broken[Check.COMPLETION].says
    server.stop()
    closed = proxy_path_of(one, 9)
    unreached = client.complete("gemma", url=closed, audience=closed, model="m")
    assert unreached.outcome is Outcome.REFUSED, "the proxy did not reach the pod; that says nothing about the model"
    with pytest.raises(DependencyFailed), way.stream("GET", f"{closed}/metrics"):
        pass


def proxy_path_of(world, port):
    pod = world.cluster.api.items(world.cluster.path("pods"))[0]
    return f"/api/v1/namespaces/{world.cluster.namespace}/pods/{pod['metadata']['name']}:{port}/proxy"


@pytest.mark.parametrize(
    ("ip", "url"), [("10.4.0.9", "http://10.4.0.9:8000"), ("fd00::9", "http://[fd00::9]:8000")], ids=["IPv4", "IPv6"]
)
def test_inside_the_cluster_a_pod_is_asked_at_its_own_address(ip, url):
    assert pod_url(seen(), {"status": {"podIP": ip}}, 8000) == url
