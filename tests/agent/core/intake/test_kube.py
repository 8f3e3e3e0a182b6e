"""Pods: what their names say, what their events say, and what only their status says."""

import pytest

from agent.core.intake.kube import read_event, read_pod, replica_set, workload
from agent.core.intake.origin import Reading
from agent.core.signal import Source
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


def test_a_whole_pod_is_named_by_its_metadata(sample):
    """Name, namespace and the killed container; the same state again is the same observation."""
    status = sample("k8s_pod_status_oomkilled")
    pod = {"kind": "Pod", "metadata": {"name": "vllm-56494768b7-544n6", "namespace": "inference"}, "status": status}
    (found,), (again,) = read_pod(pod, Reading()), read_pod(pod, Reading())
    assert (found.service, found.instance) == ("vllm", "vllm-56494768b7-544n6")
    assert found.text.startswith("OOMKilled: container vllm terminated with exit code 137\nCrashLoopBackOff: ")
    assert found.fields["restarts"] == "4"
    assert found.key == again.key
    status["containerStatuses"][0]["restartCount"] = 5
    (restarted,) = read_pod(pod, Reading())
    assert restarted.key != found.key


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
