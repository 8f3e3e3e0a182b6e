"""What a cluster tells becomes signals in whatever order its watches bring it; the rest is in tests/journeys."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from agent.app import build_app_in_memory
from agent.core.service.services import parse_services
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.monitor import cluster_monitor
from agent.entrypoints.monitor.cluster_monitor import ClusterMonitor
from agent.ports.cluster import Change, Seen
from agent.ports.store import Query
from agent.settings import read_settings

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
ROW = {"name": "vllm", "platform": "kubernetes", "namespace": "llm", "model": "m", "accelerator": "nvidia-l4",
       "owner": "console"}  # fmt: skip
PODS, NODES, EVENTS = "/api/v1/namespaces/llm/pods", "/api/v1/nodes", "/api/v1/namespaces/default/events"


def stamp(at):
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(name, made):
    owner = {"kind": "ReplicaSet", "name": "vllm-7d9f8b6c5", "controller": True}
    told = {"name": f"vllm-7d9f8b6c5-{name}", "uid": name, "namespace": "llm", "creationTimestamp": stamp(made),
            "ownerReferences": [owner], "labels": {"pod-template-hash": "7d9f8b6c5"}}  # fmt: skip
    return {"kind": "Pod", "metadata": told, "spec": {"nodeName": "l4-0"}, "status": {"phase": "Running"}}


AWAY = {
    "metadata": {"name": "l4-0", "uid": "n"},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": stamp(NOW)}
        ]
    },
}
XID = {
    "metadata": {"uid": "e"},
    "involvedObject": {"kind": "Node", "name": "l4-0"},
    "reason": "XidError",
    "message": "NVRM: Xid (PCI:0000:00:04): 79, pid=1, name=VLLM::EngineCor, GPU has fallen off the bus.",
    "type": "Warning",
    "lastTimestamp": stamp(NOW),
}


class Told:
    """A follower whose changes a test brings."""

    def __init__(self):
        self.tells = {}

    def follow(self, path, tell, *, fields=""):
        self.tells[path] = tell

    def stop(self):
        """Nothing waits."""


class NoLogs:
    """Containers that print nothing."""

    def follow(self, container, tell, *, since, running, over):
        """Nothing is told."""

    def stop(self):
        """Nothing waits."""


@pytest.fixture
def watched(tmp_path):
    def make(row=ROW):
        services = parse_services({"service": [row]})
        clock = SteppedClock(NOW + timedelta(seconds=5))
        app = build_app_in_memory(read_settings({}, platform="none"), clock=clock, state=tmp_path, services=services)
        follower = Told()
        monitor = ClusterMonitor(app, follower, services.services, folder=tmp_path, logs=NoLogs())
        for path, tell, fields in monitor._collections():
            follower.follow(path, tell, fields=fields)
        return app, follower

    return make


ORDERS = list(permutations([(PODS, pod("x2x4z", NOW - timedelta(hours=1))), (NODES, AWAY), (EVENTS, XID)]))


@pytest.mark.parametrize("order", ORDERS, ids=[" ".join(path.rpartition("/")[2] for path, _ in o) for o in ORDERS])
def test_what_a_node_tells_reaches_its_pods_whichever_comes_first(watched, order):
    """At the start the node may be listed before the pods that run on it."""
    app, follower = watched()
    for path, body in order:
        follower.tells[path](Change(Seen.LISTED, body))
    (incident,) = app.store.incidents(Query(limit=10))
    assert incident.service == "vllm"
    assert {entry.class_ for entry in incident.correlated} == {"engine_dead", "gpu_hardware_fault"}


def test_what_happened_before_a_pod_was_made_says_nothing_of_it(watched):
    app, follower = watched()
    for path, body in ((NODES, AWAY), (EVENTS, XID), (PODS, pod("x2x4z", NOW + timedelta(seconds=2)))):
        follower.tells[path](Change(Seen.CHANGED, body))
    assert app.store.incidents(Query(limit=10)) == ()


def test_an_object_that_cannot_be_read_hides_no_other(watched, monkeypatch):
    """A list is told to its end; otherwise it would be read anew for ever, and nothing after that object be seen."""

    def breaks(_body, _reading):
        raise TypeError

    monkeypatch.setattr(cluster_monitor, "read_workload", breaks)
    app, follower = watched()
    follower.tells["/apis/apps/v1/namespaces/llm/deployments"](Change(Seen.LISTED, {"metadata": {"name": "vllm"}}))
    strange = {"metadata": {"name": "l4-1"}, "status": {"conditions": [{"type": "Ready", "status": ["Unknown"]}]}}
    follower.tells[NODES](Change(Seen.LISTED, strange | {"spec": {"taints": [{"key": []}]}}))
    for path, body in ((PODS, pod("x2x4z", NOW - timedelta(hours=1))), (NODES, AWAY)):
        follower.tells[path](Change(Seen.LISTED, body))
    (incident,) = app.store.incidents(Query(limit=10))
    assert {entry.class_ for entry in incident.correlated} == {"engine_dead"}


def test_each_cluster_keeps_for_itself_until_when_it_was_looked_at(watched, tmp_path):
    """One that answers must not hide what happened in one that did not."""
    for row in (ROW, ROW | {"context": "arn:aws:eks:eu-west-1:1:cluster/a"}, ROW | {"context": "b"}):
        _, follower = watched(row)
        follower.tells[NODES](Change(Seen.CHANGED, AWAY))
    assert len(list(tmp_path.glob("cluster*.json"))) == 3
