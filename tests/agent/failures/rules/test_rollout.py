"""Pods that wait for a node."""

import pytest

from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher


def classify(matcher: Matcher, text: str) -> Finding:
    return matcher.classify(text, whole_log=True, platform=None)


WAITS = "Warning  FailedScheduling  11m  default-scheduler  0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
PODS = "NAME                    READY   STATUS    RESTARTS   AGE\nvllm-6f7c9d4b8b-abcde   {old}   0          4d\n{new}"
PENDING = "vllm-7b5d8f6c9d-fghij   0/1     Pending   0          12m\n"
DESCRIBED = (
    "OldReplicaSets:  vllm-6f7c9d4b8b (1/1 replicas created)\nNewReplicaSet:   vllm-7b5d8f6c9d (1/1 replicas created)"
)
STALLED = "  Available      True    MinimumReplicasAvailable\n  Progressing    False   ProgressDeadlineExceeded"


@pytest.mark.parametrize(
    "beside",
    [
        PODS.format(old="1/1     Running", new=PENDING),
        "Replicas: 1 desired | 1 updated | 2 total | 1 available | 1 unavailable\n" + DESCRIBED,
        STALLED,
        "Replicas: 1 desired | 1 updated | 2 total | 1 available | 1 unavailable",
        '{"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "unavailableReplicas": 1}',
        'Waiting for deployment "vllm" rollout to finish: 1 old replicas are pending termination...',
    ],
    ids=["pods", "describe", "conditions", "counts", "status", "rollout"],
)
def test_a_rollout_that_waits_for_its_own_old_pod_is_a_deadlock(matcher: Matcher, beside: str) -> None:
    """The ready pod of the old ReplicaSet stands in the text: its strategy is wrong, not the quota."""
    for text in (f"{beside}\n{WAITS}", f"{WAITS}\n{beside}"):
        found = matcher.classify(text, whole_log=True, platform="kubernetes")
        assert (found.class_, found.fix_actions[0]) == ("rollout_deadlock_no_spare_gpu", "set_strategy")
        assert found.certain


@pytest.mark.parametrize(
    "beside",
    [
        "",
        PENDING,
        PODS.format(old="0/1     Running", new=PENDING),
        PODS.format(old="1/1     Running", new="other-7b5d8f6c9d-fghij   0/1     Pending   0   12m\n"),
        PODS.format(old="1/1     Running", new="vllm-6f7c9d4b8b-fghij   0/1     Pending   0   12m\n"),
        "Replicas: 1 desired | 1 updated | 2 total | 0 available | 2 unavailable\n" + DESCRIBED,
        "OldReplicaSets:  <none>\nNewReplicaSet:   vllm-7b5d8f6c9d (1/1 replicas created)",
        "Replicas: 2 desired | 2 updated | 2 total | 1 available | 1 unavailable",
        "Replicas: 2 desired | 3 updated | 3 total | 2 available | 1 unavailable",
        (
            "Replicas: 1 desired | 1 updated | 1 total | 0 available | 1 unavailable\n"
            "Replicas: 1 desired | 1 updated | 2 total | 1 available | 1 unavailable"
        ),
    ],
    ids=[
        "alone",
        "only new",
        "old not ready",
        "another workload",
        "a second replica",
        "none available",
        "no old set",
        "as many as wanted",
        "scaled down",
        "two Deployments",
    ],
)
def test_a_pod_that_waits_for_an_accelerator_is_missing_capacity(matcher: Matcher, beside: str) -> None:
    found = matcher.classify(f"{beside}\n{WAITS}", whole_log=True, platform="kubernetes")
    assert (found.class_, found.certain) == ("quota_exceeded", False)


def test_one_line_never_proves_a_rollout_deadlock(matcher: Matcher) -> None:
    match = matcher.line(WAITS)
    assert match is not None
    assert (match.class_, match.certain) == ("quota_exceeded", False)


NODE = "Capacity:\n  cpu:                12\n  ephemeral-storage:  100Gi\n  memory:             16325228Ki\n  {gpu}pods:  110\n"


@pytest.mark.parametrize(("gpu", "fix"), [("", "fix_image_or_driver"), ("nvidia.com/gpu:     1\n  ", "scale_out")])
def test_a_node_that_offers_no_accelerator_lacks_its_device_plugin(matcher: Matcher, gpu: str, fix: str) -> None:
    assert classify(matcher, NODE.format(gpu=gpu) + WAITS).fix_actions[0] == fix


OLD = "vllm-6f7c9d4b8b-abcde   {ready}     Running   0          {age}\n"
NEW = "vllm-7b5d8f6c9d-fghij   {ready}     {status}   0          {age}\n"
SERVES, WAITING = OLD.format(ready="1/1", age="4d"), NEW.format(ready="0/1", status="Pending", age="12m")
OTHER = "web-7b5d8f6c9d-zzzzz    0/1     Pending   0          20s\n"


@pytest.mark.parametrize(
    ("rows", "class_"),
    [
        (SERVES + WAITING, "rollout_deadlock_no_spare_gpu"),
        (WAITING + SERVES, "rollout_deadlock_no_spare_gpu"),
        (OTHER + WAITING + SERVES, "rollout_deadlock_no_spare_gpu"),
        (SERVES + NEW.format(ready="0/1", status="Pending", age="5s") + WAITING, "rollout_deadlock_no_spare_gpu"),
        (SERVES + NEW.format(ready="0/1", status="Pending", age="1m"), "rollout_deadlock_no_spare_gpu"),
        ("llm   " + SERVES + "llm   " + WAITING, "rollout_deadlock_no_spare_gpu"),
        (SERVES + NEW.format(ready="0/1", status="Pending", age="59s"), "unknown"),
        (OLD.format(ready="0/1", age="4d") + WAITING, "unknown"),
        (OLD.format(ready="1/1", age="2m") + NEW.format(ready="0/1", status="Pending", age="4d"), "unknown"),
        (SERVES + OTHER.replace("20s", "3d"), "unknown"),
        ("llm   " + SERVES + "lab   " + WAITING, "unknown"),
        (WAITING, "unknown"),
    ],
    ids=[
        *("old above", "old below", "beside another's", "watched", "a minute", "with namespaces"),
        *("seconds", "old not ready", "the ready one is newer", "another workload", "another namespace", "alone"),
    ],
)
def test_a_pod_that_is_listed_as_pending_beside_an_older_ready_one_is_a_guess(
    matcher: Matcher, rows: str, class_: str
) -> None:
    found = classify(matcher, rows)
    assert (found.class_, found.certain, found.confidence < 0.5) == (class_, False, True)


def test_a_pod_that_runs_in_the_end_waits_no_more(matcher: Matcher) -> None:
    found = classify(matcher, SERVES + WAITING + NEW.format(ready="1/1", status="Running", age="25m"))
    assert found.class_ != "rollout_deadlock_no_spare_gpu"
