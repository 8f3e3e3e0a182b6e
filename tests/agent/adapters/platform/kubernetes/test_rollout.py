"""How far a rollout is, from the words of the controllers and the pods."""

import pytest

from agent.adapters.platform.kubernetes.rollout import progress, stuck_pods
from tests.agent.adapters.platform.kubernetes.seen import pod, seen

UP = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
LATE = {
    "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}]
}
OOM = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "message": "CUDA out of memory\n"}}
LOOP = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": OOM}


def waiting(message: str) -> dict:
    """A pod that the scheduler cannot place."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"metadata": {"name": "gemma-2"}, "status": {"conditions": [condition]}}


def downloading(**row: object) -> dict:
    """A pod whose weights are fetched by a container that runs before the server."""
    before = pod(**{"name": "gemma-3", **row})
    fetches = before["status"].pop("containerStatuses")
    later = pod(state={"waiting": {"reason": "PodInitializing"}})["status"]
    return before | {"status": later | {"initContainerStatuses": fetches}}


STATES = {
    "up": ({"status": UP, "pods": (pod(ready=True),)}, True, "1 of 1 pods are ready"),
    "counted and not ready": ({"status": UP, "pods": (pod(),)}, None, "0 of 1"),
    "not seen yet": ({"status": UP | {"observedGeneration": 2}}, None, "have not seen"),
    "an old pod still there": ({"status": UP | {"replicas": 2}}, None, "0 of 1"),
    "scaled to zero": ({"replicas": 0}, True, "scaled to zero"),
    "a crash loop": ({"pods": (pod(restartCount=4, **LOOP),)}, False, "OOMKilled with exit code 137: CUDA out of memory"),
    "a first crash": ({"pods": (pod(restartCount=1, **LOOP),)}, None, "0 of 1"),
    "no card": ({"pods": (waiting("1 Insufficient nvidia.com/gpu."),)}, None, "Insufficient nvidia.com/gpu"),
    "no card for too long": (
        {"status": LATE, "pods": (waiting("1 Insufficient nvidia.com/gpu."),)},
        False,
        "ProgressDeadlineExceeded: late; Unschedulable: 1 Insufficient nvidia.com/gpu.",
    ),
    "a deadline that ran out before the last change": (
        {"status": {"conditions": [LATE["conditions"][0] | {"lastUpdateTime": "2026-11-22T10:00:00Z"}]},
         "metadata": {"managedFields": [
             {"manager": "m", "time": "2026-11-22T10:00:00Z", "fieldsV1": {"f:spec": {}}}]}},
        None,
        "0 of 1",
    ),
    "a deadline shorter than the load": ({"status": LATE, "pods": (pod(),)}, None, "progressDeadlineSeconds is shorter"),
    "an image that is still fetched": (
        {"status": LATE, "pods": (pod(state={"waiting": {"reason": "ContainerCreating"}}),)}, None, "still starts"),
    "a download before the server": ({"status": LATE, "pods": (downloading(),)}, None, "still starts"),
    "a download that fails": ({"pods": (downloading(restartCount=4, **LOOP),)}, False, "OOMKilled"),
    "no image": (
        {"status": LATE, "pods": (pod(state={"waiting": {"reason": "ImagePullBackOff", "message": "Back-off x"}}),)},
        False,
        "late; ImagePullBackOff: Back-off x",
    ),
    "no such Secret": (
        {"pods": (pod(state={"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "hf" not found'}}),)},
        None,
        'CreateContainerConfigError: secret "hf" not found',
    ),
    "a quota": (
        {"status": {"conditions": [*LATE["conditions"],
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"}]}},
        False,
        "FailedCreate: exceeded quota: gpus",
    ),
    "a StatefulSet that is up": (
        {"kind": "statefulset", "pods": (pod(ready=True),),
         "status": {"replicas": 1, "readyReplicas": 1, "updateRevision": "a", "currentRevision": "a"}},
        True,
        "1 of 1",
    ),
    "a StatefulSet on the way": (
        {"kind": "statefulset", "status": UP | {"updatedReplicas": 0, "updateRevision": "b", "currentRevision": "a"}},
        None,
        "0 of 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("how", "up", "says"), STATES.values(), ids=STATES)
def test_a_state_is_told_with_the_platforms_words(how: dict, up: bool | None, says: str) -> None:
    """Up, failed, or nobody knows yet: waiting for a model to load is no failure."""
    found, said = progress(seen(**how))
    assert found is up
    assert says in said


def test_a_stateful_set_waits_for_its_broken_pod() -> None:
    """Only for pods that are not ready and not being deleted, and never in parallel."""
    gone = pod("gemma-2", **LOOP)
    gone["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z"
    old = (pod("gemma-0", **LOOP), pod("gemma-1", ready=True), gone)
    assert [p["metadata"]["name"] for p in stuck_pods(seen(kind="statefulset", old_pods=old))] == ["gemma-0"]
    assert stuck_pods(seen(kind="statefulset", old_pods=old, podManagementPolicy="Parallel")) == ()
    assert [p["metadata"]["name"] for p in stuck_pods(seen(kind="statefulset", pods=old))] == ["gemma-0"]
    assert stuck_pods(seen(old_pods=old)) == ()
