"""What goes wrong in a real cluster becomes one incident with its cause, through watches alone."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agent.adapters.kubernetes.client import connect
from agent.app import build_app_in_memory
from agent.app.runtime_environment import kubernetes
from agent.app.stores import machine_clock
from agent.core.service.services import parse_services
from agent.entrypoints.monitor.cluster_monitor import ClusterMonitor
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import handlers
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from tests import kube

pytestmark = [pytest.mark.xdist_group("kube"), pytest.mark.slow]
WITHIN_S = 15.0  # promise R17
LIMIT_S = 60.0


class Watching:
    """A whole service that follows one namespace of a real cluster."""

    def __init__(
        self,
        cluster,
        folder,
        *,
        kubeconfig=None,
        names=("vllm",),
        namespace=None,
        services=None,
        clock=None,
        platform=None,
        wait_factor=1.0,
    ):
        service = {"platform": "kubernetes", "namespace": namespace or cluster.namespace, "model": "google/gemma-3-27b-it",
                   "accelerator": "nvidia-l4", "owner": "console"}  # fmt: skip
        self.services = services or parse_services({"service": [service | {"name": name} for name in names]})
        settings = read_settings({}, platform="kubernetes")
        config = str(kubeconfig or cluster.plane.kubeconfig)
        clock = clock or machine_clock()
        environment = kubernetes(settings, self.services, clock, lambda _context: connect(kubeconfig=config))
        if platform is not None:
            environment = replace(
                environment, platform_of=lambda name: platform if name in names else None, wait_factor=wait_factor
            )
        folder.mkdir(exist_ok=True)
        self.app = build_app_in_memory(
            settings, clock=clock, state=folder, services=self.services, environment=environment
        )
        self.work = self.app.worker(handlers(self.app), threads=1).run_due
        (at,) = self.app.environment.clusters
        self.monitor = ClusterMonitor(self.app, at.follower, at.services, folder=folder, logs=at.logs)
        self.monitor.start()

    def incidents(self):
        on_tick(self.app.contexts[Owner.TICK])
        self.work()
        return self.app.store.incidents(Query(limit=100))

    def until(self, reached, *, limit_s=LIMIT_S):
        end = time.monotonic() + limit_s
        while not (found := [i for i in self.incidents() if reached(i)]):
            assert time.monotonic() < end, [(i.phase, i.diagnosis, i.correlated) for i in self.incidents()]
            time.sleep(0.05)
        return found[0]

    def stop(self):
        self.monitor.stop()


@pytest.fixture
def watching(tmp_path):
    made = []

    def make(cluster, **how):
        made.append(Watching(cluster, tmp_path / str(len(made)), **how))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def diagnosed(class_):
    return lambda incident: incident.diagnosis is not None and incident.diagnosis.class_ == class_


def test_a_pod_that_is_killed_for_memory_is_an_incident_within_seconds(kube_cluster, watching):
    """R17: from the kubelet's status to an incident of the right class; one, whatever else is told of it."""
    cluster = kube_cluster()
    watch = watching(cluster)
    cluster.deploy("vllm", ["--max-model-len=65536"])
    with cluster.play():
        incident = watch.until(diagnosed("host_oom"))
        pods = cluster.api.items(cluster.path("pods"))
        ended = pods[0]["status"]["containerStatuses"][0]["lastState"]["terminated"]["finishedAt"]
    took_s = (incident.opened_at - datetime.fromisoformat(ended)).total_seconds()
    assert took_s < WITHIN_S
    assert [i.id for i in watch.incidents()] == [incident.id]
    assert incident.revision == pods[0]["metadata"]["ownerReferences"][0]["name"]
    assert incident.diagnosis.unasked_end


def test_what_was_asked_for_is_no_incident(kube_cluster, watching):
    """A rollout, a scale-in and a deleted pod end servers, each because somebody asked for it."""
    cluster = kube_cluster(gpus=4)
    watch = watching(cluster)
    cluster.deploy("vllm", ["--max-model-len=4096"], replicas=2)
    path = cluster.path("deployments", "vllm")
    with cluster.play():
        cluster.until(lambda: cluster.api.get(path)["status"].get("readyReplicas") == 2)
        args = {"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": ["--max-model-len=8192"]}
        cluster.api.patch(path, [args])
        cluster.until(lambda: cluster.api.get(path)["status"].get("updatedReplicas") == 2)
        cluster.until(lambda: cluster.api.get(path)["status"].get("replicas") == 2)
        cluster.api.patch(path, [{"op": "replace", "path": "/spec/replicas", "value": 1}])
        cluster.until(lambda: cluster.api.get(path)["status"].get("replicas") == 1)
        pod = cluster.api.items(cluster.path("pods"))[0]["metadata"]
        cluster.api.delete(cluster.path("pods", pod["name"]), uid=pod["uid"])
        cluster.until(lambda: cluster.api.find(cluster.path("pods", pod["name"])) is None)
        cluster.until(lambda: cluster.api.get(path)["status"].get("readyReplicas") == 1)
    cluster.deploy("other", ["--max-model-len=65536"])  # not watched: proves that the watch has come so far
    assert watch.incidents() == ()


def test_a_rolling_update_that_waits_for_its_own_card_is_named(kube_cluster, watching):
    """The deadlock of one GPU: the scheduler's words and the Deployment's own together."""
    cluster = kube_cluster(gpus=1)
    watch = watching(cluster)
    cluster.deploy("vllm", ["--max-model-len=4096"], deadline_s=3)
    path = cluster.path("deployments", "vllm")
    with cluster.play():
        cluster.until(lambda: cluster.api.get(path)["status"].get("readyReplicas") == 1)
        args = {"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": ["--max-model-len=8192"]}
        cluster.api.patch(path, [args])
        incident = watch.until(diagnosed("rollout_deadlock_no_spare_gpu"))
    assert incident.service == "vllm"


def test_an_end_of_long_ago_of_a_server_that_serves_again_is_history(kube_cluster, watching):
    """Found at the first start; the same found by a successor, after what was looked at last, is news."""
    cluster = kube_cluster()
    life = kube.rig("kubelet").Life
    cluster.life = lambda pod: life.READY
    cluster.deploy("vllm", ["serve"])
    with cluster.play():
        cluster.until(lambda: cluster.api.get(cluster.path("deployments", "vllm"))["status"].get("readyReplicas") == 1)
    name = cluster.api.items(cluster.path("pods"))[0]["metadata"]["name"]
    ended = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T01:00:00Z",
    }
    path = f"{cluster.path('pods', name)}/status"
    cluster.api.patch(
        path, [{"op": "replace", "path": "/status/containerStatuses/0/lastState", "value": {"terminated": ended}}]
    )
    watch = watching(cluster)
    later = ended | {
        "startedAt": "2026-01-01T02:00:00Z",
        "finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    cluster.until(lambda: watch.monitor._pods)
    assert watch.incidents() == ()
    cluster.api.patch(
        path, [{"op": "replace", "path": "/status/containerStatuses/0/lastState", "value": {"terminated": later}}]
    )
    watch.until(diagnosed("host_oom"))


OOM_LOG = """INFO 11-22 10:00:01 [api_server.py:1896] vLLM API server version 0.11.0
INFO 11-22 10:00:09 [gpu_model_runner.py:2602] Starting to load model google/gemma-3-27b-it...
ERROR 11-22 10:00:41 [core.py:708] EngineCore failed to start.
ERROR 11-22 10:00:41 [core.py:708]   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py", line 2620, in load_model
ERROR 11-22 10:00:41 [core.py:708] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB. GPU 0 has a total capacity of 21.96 GiB of which 1.15 GiB is free. Including non-PyTorch memory, this process has 20.80 GiB memory in use.
RuntimeError: Engine core initialization failed. See root cause above."""


def test_pods_that_a_quota_refuses_are_told_by_their_deployment(kube_cluster, watching):
    cluster = kube_cluster()
    watch = watching(cluster)
    hard = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}
    cluster.create("resourcequotas", hard)
    cluster.until(lambda: (cluster.api.items(cluster.path("resourcequotas"))[0].get("status") or {}).get("hard"))
    cluster.deploy("vllm", ["serve"])
    incident = watch.until(diagnosed("quota_exceeded"))
    assert any("exceeded quota" in e.line for e in incident.diagnosis.evidence)
