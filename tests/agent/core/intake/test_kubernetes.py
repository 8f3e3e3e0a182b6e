"""Pods: what their names say, what their events say, and what only their status says."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.intake.kubernetes import CLOCKS_DIFFER_S, read_event, read_pod, replica_set, workload
from agent.core.intake.log_entry import read_log_entry
from agent.core.intake.origin import Reading
from agent.core.intake.signal import AskedBy, End, Source, Waiting
from agent.errors import InputRejected


@pytest.mark.parametrize(
    ("pod", "owner", "revision"),
    [
        ("vllm-gemma4-56494768b7-544n6", "vllm-gemma4", "vllm-gemma4-56494768b7"),
        ("vllm-0", "vllm", None),
        ("vllm-gemma4", "vllm-gemma4", None),
        ("just-a-plain-words", "just-a-plain-words", None),
    ],
)
def test_a_pods_name_says_its_workload(pod, owner, revision):
    """Generated suffixes use an alphabet without vowels, so words stay."""
    assert (workload(pod), replica_set(pod)) == (owner, revision)


def test_an_event_outside_a_log_entry_is_read_alike(sample):
    """An exporter that posts bare events tells the same."""
    event = sample("gke_event_unhealthy")["jsonPayload"]
    (found,) = read_event(event, Reading())
    assert (found.service, found.source) == ("vllm-gemma4", Source.PLATFORM_LOG)
    assert found.text.startswith("Unhealthy: Startup probe failed")
    assert found.at.isoformat() == "2026-11-20T10:15:32+00:00"


@pytest.mark.parametrize(
    ("kind", "named", "found"),
    [
        ("Pod", "vllm-56494768b7-544n6", ("vllm", "vllm-56494768b7", "vllm-56494768b7-544n6")),
        ("ReplicaSet", "vllm-56494768b7", ("vllm", "vllm-56494768b7", None)),
        ("ReplicaSet", "by-hand", ("by-hand", None, None)),
        ("Deployment", "vllm-0", ("vllm-0", None, None)),
        ("StatefulSet", "vllm", ("vllm", None, None)),
    ],
)
def test_an_event_belongs_to_the_workload_of_what_it_is_about(kind, named, found):
    """An exporter posts all kinds: pods that a quota refuses are told by their replica set."""
    event = {"involvedObject": {"kind": kind, "name": named}, "reason": "FailedCreate", "message": "exceeded quota",
             "type": "Warning", "lastTimestamp": "2026-11-22T10:00:00Z"}  # fmt: skip
    (told,) = read_event(event, Reading())
    assert (told.service, told.revision, told.instance) == found


def test_a_whole_pod_is_named_by_its_metadata(sample):
    """Name, namespace and the killed container: its end, and how the pod stands; told again they are the same."""
    status = sample("k8s_pod_status_oomkilled")
    pod = {"kind": "Pod", "metadata": {"name": "vllm-56494768b7-544n6", "namespace": "inference"}, "status": status}
    (end, found), again = read_pod(pod, Reading()), read_pod(pod, Reading())
    assert (found.service, found.instance) == (end.service, end.instance) == ("vllm", "vllm-56494768b7-544n6")
    assert end.text == "OOMKilled: container vllm terminated with exit code 137"
    assert end.end == End(exit_code=137, oom=True, reason="OOMKilled")
    assert found.text.startswith("CrashLoopBackOff: ")
    assert found.fields["restarts"] == "4"
    assert [end.key, found.key] == [s.key for s in again]
    status["containerStatuses"][0]["restartCount"] = 5
    same_end, restarted = read_pod(pod, Reading())
    assert same_end.key == end.key
    assert restarted.key != found.key


DELETED = {"deletionTimestamp": "2026-11-20T10:15:29Z", "deletionGracePeriodSeconds": 30}  # asked for at 10:14:59


@pytest.mark.parametrize(
    ("finished", "reason", "conditions", "asked_by"),
    [
        ("2026-11-20T10:15:05Z", "Error", [], AskedBy.DELETION),
        ("2026-11-20T10:14:59Z", "Completed", [], AskedBy.DELETION),
        ("2026-11-20T10:15:05Z", "Error", [{"reason": "EvictionByEvictionAPI"}], AskedBy.DRAIN),
        ("2026-11-20T10:14:56Z", "Error", [], None),
        ("2026-11-20T10:15:05Z", "OOMKilled", [], None),
    ],
    ids=["deleted", "in the same second", "drained", "ended before it was deleted", "killed for memory all the same"],
)
def test_a_deletion_asks_for_the_ends_after_it_and_for_no_other(finished, reason, conditions, asked_by):
    """DeletionTimestamp is when the grace is over: what ended before its begin ended by itself."""
    ended = {"exitCode": 143, "reason": reason, "finishedAt": finished}
    status = {"containerStatuses": [{"name": "vllm", "state": {"terminated": ended}}], "conditions": conditions}
    pod = {"kind": "Pod", "metadata": {"name": "vllm-56494768b7-544n6", **DELETED}, "status": status}
    (end,) = read_pod(pod, Reading())
    assert end.end.asked_by is asked_by


ASKED_AT = datetime(2026, 11, 20, 10, 14, 59, tzinfo=UTC)


@given(
    code=st.sampled_from([0, 1, 137, 139, 143]),
    after_s=st.integers(-90, 90),
    ahead_s=st.integers(-CLOCKS_DIFFER_S, CLOCKS_DIFFER_S),
)
def test_clocks_that_differ_as_a_cluster_in_order_does_make_no_stop_an_incident(code, after_s, ahead_s):
    """What a deletion ended is asked for, however the clocks differ; what ended clearly before it is not."""
    finished = ASKED_AT + timedelta(seconds=after_s + ahead_s)
    ended = {"exitCode": code, "reason": "Error", "finishedAt": finished.strftime("%Y-%m-%dT%H:%M:%SZ")}
    status = {"containerStatuses": [{"name": "vllm", "state": {"terminated": ended}}]}
    pod = {"kind": "Pod", "metadata": {"name": "vllm-56494768b7-544n6", **DELETED}, "status": status}
    (end,) = read_pod(pod, Reading())
    if after_s >= 0 and code in {0, 143}:
        assert end.end.asked_by is AskedBy.DELETION
    if after_s < -2 * CLOCKS_DIFFER_S or (finished < ASKED_AT and code not in {0, 143}):
        assert end.end.asked_by is None


def test_an_init_container_ends_well_with_0():
    """What prepares a pod is to end; only a failure of it is one."""
    done = {"name": "download", "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-20T10:15:05Z"}}}
    (standing,) = read_pod({"initContainerStatuses": [done], "phase": "Pending"}, Reading(service="vllm"))
    assert standing.end is None
    done["state"]["terminated"]["exitCode"] = 1
    (end,) = read_pod({"initContainerStatuses": [done], "phase": "Pending"}, Reading(service="vllm"))
    assert end.ends_unasked


def test_a_pod_that_is_taken_from_its_node_whole_is_an_end():
    """An evicted pod has no container status left; its own reason says it."""
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    pod = {"kind": "Pod", "metadata": {"name": "vllm-56494768b7-544n6"}, "status": status}
    end = read_pod(pod, Reading(clock=lambda: datetime(2026, 11, 20, tzinfo=UTC)))[0]
    assert end.ends_unasked
    assert end.text == "Evicted: The node was low on resource: memory."


def test_a_status_without_a_name_takes_the_readings():
    """A bare status is about the service that the reading names, or refused."""
    status = {
        "containerStatuses": [
            {"name": "vllm", "state": {"running": {"startedAt": "2026-11-20T10:15:32Z"}}, "ready": True}
        ]
    }
    (found,) = read_pod(status, Reading(service="gemma"))
    assert (found.service, found.text) == ("gemma", "Running: container vllm is ready")
    with pytest.raises(InputRejected, match="service name is missing"):
        read_pod(status, Reading())


def test_a_pod_without_containers_is_refused():
    """Nothing has happened in it yet."""
    with pytest.raises(InputRejected, match="containerStatuses is missing"):
        read_pod({"kind": "Pod", "status": {"phase": "Pending"}}, Reading())


CLOSED = 'Startup probe failed: Get "http://10.4.0.9:8000/health": dial tcp 10.4.0.9:8000: connect: connection refused'
WAITS = {
    "no node yet": (
        "FailedScheduling",
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        0,
        Waiting.FOR_A_PLACE,
    ),
    "a port that is closed while the model loads": ("Unhealthy", CLOSED, 599, Waiting.FOR_ITS_PORT),
    "for ten minutes": ("Unhealthy", CLOSED, 600, None),
    "another answer of a probe": ("Unhealthy", "Startup probe failed: HTTP probe failed with statuscode: 404", 0, None),
    "a probe that gave up": ("Killing", "Container vllm failed startup probe, will be restarted", 0, None),
}


@pytest.mark.parametrize(("reason", "message", "for_s", "waiting"), WAITS.values(), ids=WAITS)
def test_an_event_says_whether_its_server_only_waits(reason, message, for_s, waiting):
    """As an exporter posts it, and as a log entry."""
    first = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
    event = {"involvedObject": {"kind": "Pod", "name": "vllm-56494768b7-544n6"}, "reason": reason, "message": message,
             "type": "Warning", "firstTimestamp": first.isoformat(),
             "lastTimestamp": (first + timedelta(seconds=for_s)).isoformat()}  # fmt: skip
    entry = {"logName": "projects/p/logs/events", "insertId": "1", "timestamp": first.isoformat(), "jsonPayload": event,
             "resource": {"type": "k8s_pod", "labels": {"pod_name": "vllm-56494768b7-544n6"}}}  # fmt: skip
    (one,), (other,) = read_event(event, Reading()), read_log_entry(entry, Reading())
    assert (one.waiting, other.waiting) == (waiting, waiting)


@pytest.mark.parametrize(
    ("phase", "restarts", "waiting"),
    [("Pending", 0, Waiting.FOR_A_PLACE), ("Pending", 1, None), ("Running", 0, None)],
    ids=["its image is fetched", "its download ended before", "it runs"],
)
def test_a_pod_waits_as_long_as_nothing_of_it_has_run(phase, restarts, waiting):
    row = {"name": "vllm", "restartCount": restarts, "ready": False,
           "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}}  # fmt: skip
    pod = {"metadata": {"name": "vllm-56494768b7-544n6"}, "status": {"phase": phase, "containerStatuses": [row]}}
    (found,) = read_pod(pod, Reading(received_at=datetime(2026, 11, 22, 10, 0, tzinfo=UTC)))
    assert found.waiting is waiting
