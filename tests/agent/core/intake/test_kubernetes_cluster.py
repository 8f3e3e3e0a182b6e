"""Workloads and nodes: which of their conditions are trouble, and whose."""

import pytest

from agent.core.intake.kubernetes_cluster import read_node, read_node_event, read_workload
from agent.core.intake.origin import Reading
from agent.core.intake.signal import Waiting

AT = "2026-11-20T10:15:32Z"
POD = {
    "metadata": {
        "name": "vllm-56494768b7-544n6",
        "namespace": "llm",
        "uid": "u1",
        "labels": {"pod-template-hash": "56494768b7"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "vllm-56494768b7", "controller": True}],
    }
}


def deployment(*conditions, **status):
    rows = [{"lastTransitionTime": AT, **row} for row in conditions]
    return {"metadata": {"name": "vllm", "namespace": "llm", "uid": "d1"}, "status": {"conditions": rows, **status}}


STUCK = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
         "message": 'ReplicaSet "vllm-56494768b7" has timed out progressing.'}  # fmt: skip


def test_a_rollout_that_is_stuck_names_its_revision():
    (found,) = read_workload(deployment(STUCK), Reading())
    assert (found.service, found.revision, found.waiting) == ("vllm", "vllm-56494768b7", Waiting.FOR_A_PLACE)
    assert found.text == 'ProgressDeadlineExceeded: ReplicaSet "vllm-56494768b7" has timed out progressing.'


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "unavailableReplicas": 1}, True),
        ({"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "unavailableReplicas": 1}, False),
        ({"replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}, False),
        ({"replicas": True, "updatedReplicas": "x", "readyReplicas": None}, False),
    ],
    ids=["the old one serves", "scaled out", "the first one", "of other types"],
)
def test_only_an_old_replica_that_serves_is_said_to(status, said):
    (found,) = read_workload(deployment(STUCK, **status), Reading())
    assert ("the old ReplicaSet still serves" in found.text) is said


@pytest.mark.parametrize(
    "row",
    [
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
        {"type": "ReplicaFailure", "status": "False"},
    ],
)
def test_what_passes_by_itself_is_no_signal(row):
    assert read_workload(deployment(row), Reading()) == []


def node(*conditions, taints=()):
    return {
        "metadata": {"name": "n1", "uid": "n"},
        "spec": {"taints": list(taints)},
        "status": {"conditions": list(conditions)},
    }


def test_a_node_is_told_for_each_pod_of_ours_on_it():
    away = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": AT}  # fmt: skip
    (found,) = read_node(node(away), [POD], Reading())
    assert (found.service, found.instance) == ("vllm", "vllm-56494768b7-544n6")
    assert found.text == "NodeNotReady: node n1: NodeStatusUnknown: Kubelet stopped posting node status."
    assert read_node(node(away), [], Reading()) == []
    assert found.key == read_node(node(away), [POD], Reading())[0].key


@pytest.mark.parametrize(
    ("kind", "status", "count"),
    [("Ready", "True", 0), ("MemoryPressure", "True", 0), ("GpuXid", "True", 1), ("GpuXid", "False", 0)],
)
def test_other_conditions_count_where_they_say_that_something_is_broken(kind, status, count):
    row = {"type": kind, "status": status, "reason": "X", "message": "y", "lastTransitionTime": AT}
    assert len(read_node(node(row), [POD], Reading())) == count


def test_a_spot_node_that_is_about_to_be_taken_says_so():
    taint = {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule", "timeAdded": AT}
    (found,) = read_node(node(taints=[taint, {"key": "nvidia.com/gpu"}]), [POD], Reading())
    assert found.text.startswith("SpotTermination: node n1")


@pytest.mark.parametrize(("kind", "count"), [("Warning", 1), ("Normal", 0)])
def test_events_of_a_node_count_where_they_warn(kind, count):
    event = {"metadata": {"uid": "e"}, "involvedObject": {"kind": "Node", "name": "n1"}, "type": kind, "reason": "XidError",
             "message": "Xid 79", "lastTimestamp": AT}  # fmt: skip
    assert len(read_node_event(event, [POD], Reading())) == count
