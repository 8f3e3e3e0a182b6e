"""Every kind of trouble of a pod in a real cluster is one incident with its cause, through watches and logs alone."""

import time
from datetime import UTC, datetime

import pytest

from agent.core.intake.kubernetes import workload
from agent.entrypoints.monitor import cluster_monitor
from agent.failures.signature import FailureClass
from tests import kube
from tests.journeys.test_cluster_monitor import OOM_LOG, Watching
from tools.kubelet_logs import KubeletLogs, LiveLog

pytestmark = [pytest.mark.xdist_group("kube"), pytest.mark.slow]
LIMIT_S = 60.0

CORE = "(EngineCore pid=21) ERROR 11-22 10:20:00 [core.py:960]"
SERVER = "(APIServer pid=1) ERROR 11-22 10:20:00 [async_llm.py:704]"
ENGINE_DEAD = (
    f"{CORE} torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    f"{SERVER} vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above).",
)
XID = "NVRM: Xid (PCI:0000:00:04): 79, pid=1234, name=VLLM::EngineCor, GPU has fallen off the bus."


def now():
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Scene:
    """A cluster in which each service has a trouble of its own."""

    def __init__(self, cluster):
        self.cluster, self.api = cluster, cluster.api
        self.logs = {name: LiveLog() for name in TROUBLES}
        self.kubelet = KubeletLogs(cluster.plane.certificate, self._log)
        self.nodes = []
        self.kubelet.on_node(self.api, cluster.namespace)

    def _log(self, _namespace, pod, _container, previous):
        name = workload(pod)
        return OOM_LOG if previous and name == "crash-loop" else None if previous else self.logs.get(name)

    def own_node(self, service):
        """Return a node for one service alone."""
        name = f"{self.cluster.namespace}-{service}"
        kube.rig("kubelet").make_node(self.api.client, name, gpus=1, memory="512Gi", labels={"own": name})
        self.kubelet.on_node(self.api, name)
        self.nodes.append(name)
        return name

    def pod(self, service):
        found = (p for p in self.api.items(self.cluster.path("pods")) if workload(p["metadata"]["name"]) == service)
        return next(found, {"status": {}})  # it may not be made yet

    def status(self, service, **changes):
        """Write a pod's status as a kubelet would."""
        steps = [{"op": "add", "path": f"/status/{key}", "value": value} for key, value in changes.items()]
        self.api.patch(f"{self.cluster.path('pods', self.pod(service)['metadata']['name'])}/status", steps)

    def event(self, service, reason, message):
        """Post an event about a pod as its kubelet or the scheduler would."""
        told = self.pod(service)["metadata"]
        about = {"kind": "Pod", "namespace": self.cluster.namespace, "name": told["name"], "uid": told["uid"]}
        self.api.create(self.cluster.path("events"), _event(about, reason, message))

    def node_event(self, node, reason, message):
        about = {"kind": "Node", "name": node, "uid": node}
        event = _event(about, reason, message)
        event["metadata"]["namespace"] = "default"
        self.api.create("/api/v1/namespaces/default/events", event)

    def close(self):
        self.kubelet.close()
        for log in self.logs.values():
            log.end()
        for node in self.nodes:
            self.cluster.plane.request("DELETE", f"/api/v1/nodes/{node}")


def _event(about, reason, message):
    told = {"reason": reason, "message": message, "type": "Warning", "firstTimestamp": now(), "lastTimestamp": now()}
    return {"metadata": {"generateName": "e-"}, "involvedObject": about} | told


def evicted(scene, service):
    message = "The node was low on resource: ephemeral-storage. Container vllm was using 40Gi."
    scene.status(service, phase="Failed", reason="Evicted", message=message)


def shut_down(scene, service):
    message = "Pod was terminated in response to imminent node shutdown."
    scene.status(service, phase="Failed", reason="Terminated", message=message)


def preempted(scene, service):
    scene.event(service, "Preempted", "Preempted by llm/batch on node l4-0")


def not_mounted(scene, service):
    scene.event(service, "FailedMount", 'MountVolume.SetUp failed for volume "models": mount failed: exit status 1')


def not_live(scene, service):
    """The kubelet's probe fails, so it kills the container; the number that it ends with says nothing."""
    probe = 'Liveness probe failed: Get "http://10.4.0.9:8000/health": context deadline exceeded'
    scene.event(service, "Unhealthy", probe)
    scene.event(service, "Killing", "Container vllm failed liveness probe, will be restarted")
    row = dict(scene.pod(service)["status"]["containerStatuses"][0])
    ended = {"exitCode": 137, "reason": "Error", "startedAt": now(), "finishedAt": now()}
    row |= {
        "restartCount": 1,
        "ready": False,
        "lastState": {"terminated": ended},
        "state": {"running": {"startedAt": now()}},
    }
    scene.status(service, containerStatuses=[row])


def dies_while_it_serves(scene, service):
    """The container goes on, so that its log alone says so."""
    scene.logs[service].say("INFO 11-22 10:00:01 Application startup complete.", *ENGINE_DEAD)


def taken_by_the_cloud(scene, service):
    node = f"/api/v1/nodes/{scene.cluster.namespace}-{service}"
    taint = {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}
    scene.api.patch(node, [{"op": "add", "path": "/spec/taints", "value": [taint]}])


def card_lost(scene, service):
    """The node goes away, and only then is it known that its card did."""
    node = f"{scene.cluster.namespace}-{service}"
    away = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": now(),
            "message": "Kubelet stopped posting node status."}  # fmt: skip
    scene.api.patch(f"/api/v1/nodes/{node}/status", [{"op": "replace", "path": "/status/conditions/0", "value": away}])
    scene.node_event(node, "XidError", XID)


def nothing(_scene, _service):
    """The life of the pod says it all."""


TROUBLES = {
    "oom-killed": ("oom_killed", nothing, "host_oom"),
    "crash-loop": ("crash_loop", nothing, "gpu_oom_weights"),
    "crash-loop-mute": ("crash_loop", nothing, "engine_dead"),
    "no-image": ("image_pull_fails", nothing, "image_pull_failed"),
    "startup-probe": ("startup_probe_fails", nothing, "startup_probe_failed"),
    "no-node": (None, nothing, "quota_exceeded"),
    "evicted": ("ready", evicted, "disk_full"),
    "shut-down": ("ready", shut_down, "quota_exceeded"),
    "preempted": ("ready", preempted, "quota_exceeded"),
    "not-mounted": ("loading", not_mounted, "weights_unreadable"),
    "liveness": ("ready", not_live, "queue_saturation"),
    "engine-dead": ("ready", dies_while_it_serves, "illegal_memory_access"),
    "spot": ("ready", taken_by_the_cloud, "quota_exceeded"),
    "xid": ("ready", card_lost, "gpu_hardware_fault"),
}
"""What happens, how the pod lives, what happens to it then, and the class that its one incident must have."""

OWN_NODE = ("spot", "xid")


@pytest.fixture(scope="module")
def incidents(kube_plane, tmp_path_factory):
    """Let all of it happen in one cluster before one agent; returns the incidents by service."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_monitor, "PENDING_S", 1.0)
        cluster = kube.Cluster(kube_plane, "test_cluster_incidents", gpus=len(TROUBLES))
        scene = Scene(cluster)
        watch = Watching(cluster, tmp_path_factory.mktemp("incidents"), names=tuple(TROUBLES))
        try:
            yield _happened(scene, watch)
        finally:
            watch.stop()
            scene.close()
            cluster.close()


def _happened(scene, watch):
    cluster, life = scene.cluster, kube.rig("kubelet").Life
    cluster.life = lambda pod: life(TROUBLES[workload(pod.metadata.name)][0])
    for name, (how, _, _) in TROUBLES.items():
        own = scene.own_node(name) if name in OWN_NODE else None
        limits = {"nvidia.com/gpu": "1" if how else "99", "cpu": "100m", "memory": "1Gi"}
        body = kube.workload(name, ["serve"], container={"resources": {"limits": limits}})
        body["spec"]["template"]["spec"]["nodeSelector"] = {"own": own} if own else {kube.NODE_LABEL: cluster.namespace}
        cluster.api.create(cluster.path("deployments"), body)
    ready = [name for name, (how, _, _) in TROUBLES.items() if how in {"ready", "loading"}]
    with cluster.play():
        cluster.until(lambda: all(scene.pod(name)["status"].get("containerStatuses") for name in ready))
        cluster.until(lambda: len(watch.monitor._pods) >= len(TROUBLES))
        for name, (_, happens, _) in TROUBLES.items():
            happens(scene, name)
        wanted, end = {name: class_ for name, (_, _, class_) in TROUBLES.items()}, time.monotonic() + LIMIT_S
        while (found := _classes(watch)) != wanted and time.monotonic() < end:
            time.sleep(0.05)
    made = {name: [] for name in TROUBLES}
    for incident in watch.incidents():
        made[incident.service].append(incident)
    assert found.keys() <= wanted.keys()
    return made


def _classes(watch):
    return {i.service: str(i.diagnosis.class_) for i in watch.incidents() if i.diagnosis is not None}


@pytest.mark.parametrize("name", TROUBLES)
def test_each_trouble_is_one_incident_with_its_cause(incidents, name):
    """One, whatever else is told of it, and none of the neighbours' troubles in it."""
    assert [str(i.diagnosis.class_) for i in incidents[name] if i.diagnosis] == [TROUBLES[name][2]]
    assert len(incidents[name]) == 1
    assert TROUBLES[name][2] in set(FailureClass)


def test_the_log_of_a_running_container_is_evidence(incidents):
    """What a server writes while it goes on was seen without an alert."""
    (incident,) = incidents["engine-dead"]
    assert any("illegal memory access" in e.line for e in incident.diagnosis.evidence)


def test_a_pod_without_a_node_says_what_is_lacking(incidents):
    (incident,) = incidents["no-node"]
    assert any("Insufficient nvidia.com/gpu" in e.line for e in incident.diagnosis.evidence)


def test_a_pod_that_was_taken_ended_unasked(incidents):
    assert all(incidents[name][0].diagnosis.unasked_end for name in ("evicted", "shut-down", "oom-killed"))
