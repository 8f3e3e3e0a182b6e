"""What a pod waited for is over once it has it, and nothing is told of what its containers do then."""

import pytest

from agent.failures.match.matcher import Matcher
from tests.agent.failures.log_changes import HEALTHY_START

WAITS = {
    "volume": 'Warning  FailedAttachVolume  71s  attachdetach-controller  Multi-Attach error for volume "pvc-lamp"',
    "node": "Warning  FailedScheduling  71s  default-scheduler  0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
}
RUNS = "Normal  Started  37s  kubelet  Started container vllm"


@pytest.mark.parametrize("waits", WAITS.values(), ids=WAITS)
def test_what_a_pod_waited_for_is_over_once_a_container_of_it_starts(matcher: Matcher, waits: str) -> None:
    """Not before, not of another pod, and no failure inside the container."""

    def told(*lines: str) -> str:
        return matcher.classify("\n".join(lines), whole_log=True, platform="kubernetes").class_

    assert told(waits, RUNS) == "benign"
    assert not matcher.classify(f"{waits}\n{RUNS}", whole_log=True, platform="kubernetes").certain
    given = "Normal  Scheduled  37s  default-scheduler  Successfully assigned llm/lamp-5f7c9d8b64-x4l8z to node-1"
    assert (told(waits, given) == "benign") is ("FailedScheduling" in waits)
    assert told(waits, given, given.replace("x4l8z", "x4l8q")) == told(waits)
    assert told(RUNS.replace("37s", "5m"), waits) == told(waits) != "benign"
    assert told(RUNS, waits) == "benign"  # the ages say which was first
    assert told(f"pod/lamp-0 {waits}", f"pod/lamp-1 {RUNS}") == told(waits)
    assert told(waits, RUNS, "OSError: [Errno 13] Permission denied: '/models/lamp'", RUNS) == "weights_unreadable"


def test_an_event_without_a_name_is_of_the_only_pod_that_was_created(matcher: Matcher) -> None:
    """Columns that somebody chose, without the object; with two pods nobody knows whose it is."""
    at = "2031-05-06T07:08:09Z   "
    created = at + "SuccessfulCreate   Created pod: lamp-5f7c9d8b64-x4l8z"
    waits = at + "FailedScheduling   0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    given = at + "Scheduled          Successfully assigned llm/lamp-5f7c9d8b64-x4l8z to node-1"
    other = created.replace("x4l8z", "x4l8q")

    def class_of(*lines: str) -> str:
        return matcher.classify("\n".join(lines), whole_log=True, platform="kubernetes").class_

    assert class_of(created, waits, given) == "benign"
    assert (
        class_of(created, waits)
        == class_of(created, given, waits)
        == class_of(created, other, waits, given)
        == "quota_exceeded"
    )


NO_CARD = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
TO_NODE = "Successfully assigned default/{} to node-1"
UNBOUND = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."


def test_an_event_is_placed_by_its_age_and_known_with_its_reason_cut(matcher: Matcher) -> None:
    """Whoever copies events cuts the first; the autoscaler's stands below that of the node that the pod got since."""
    events = [
        f"edScheduling   5m21s (x2 over 5m21s)  default-scheduler   {UNBOUND}",
        f"  Normal   Scheduled          5m21s  default-scheduler   {TO_NODE.format('lamp')}",
        "  Normal   NotTriggerScaleUp  7m10s  cluster-autoscaler  pod didn't trigger scale-up: 1 pod has unbound immediate PersistentVolumeClaims",
    ]
    found = matcher.classify("\n".join(events), whole_log=True, platform="kubernetes")
    assert (found.class_, found.certain) == ("benign", False)
    without = "\n".join([events[0], events[2]])
    assert matcher.classify(without, whole_log=True, platform="kubernetes").class_ != "benign"


DESCRIBED = [
    f"  Warning  FailedScheduling  {{}}  default-scheduler  {NO_CARD}",
    f"  Normal   Scheduled         9m   default-scheduler  {TO_NODE.format('vllm-0')}",
    "  Normal   Started           8m   kubelet            Started container vllm",
]


@pytest.mark.parametrize(
    ("lines", "class_"),
    [
        ([f"5s   Warning  FailedScheduling  pod/vllm-0  {NO_CARD}", f"9d  Normal  Scheduled  pod/vllm-0  {TO_NODE.format('vllm-0')}",
          "9d  Normal  Started  pod/vllm-0  Started container vllm"], "quota_exceeded"),
        ([f"9d  Warning  FailedScheduling  pod/vllm-0  {NO_CARD}", "9d  Normal  Started  pod/vllm-0  Started container vllm"], "benign"),
        (['10s  Warning  FailedAttachVolume  pod/vllm-0  Multi-Attach error for volume "pvc-1"',
          "40m  Normal  Started  pod/vllm-0  Started container vllm"], "weights_unreadable"),
        (['llm  40m (x7 over 9d)  Warning  FailedAttachVolume  pod/vllm-0  Multi-Attach error for volume "pvc-1"',
          "llm  10s  Normal  Started  pod/vllm-0  Started container vllm"], "benign"),
        ([f"Warning FailedScheduling default-scheduler {NO_CARD}", f"Normal Scheduled default-scheduler {TO_NODE.format('web-1')}",
          "Normal Started kubelet Started container nginx"], "quota_exceeded"),
        ([DESCRIBED[0].format("10m"), *DESCRIBED[1:]], "benign"),
        ([DESCRIBED[0].format("30s (x9 over 20m)"), *DESCRIBED[1:]], "quota_exceeded"),
        (["Events:", DESCRIBED[0].format("10m"), "Name:  vllm-0", "Events:", *DESCRIBED[1:]], "quota_exceeded"),
    ],
    ids=[
        "not sorted by time", "as old", "volume taken since", "last seen before", "a pod that nobody names", "one pod described",
        "waits again", "two pods described",
    ],
)  # fmt: skip
def test_what_a_pod_has_since_long_does_not_end_what_it_waits_for_now(
    matcher: Matcher, lines: list[str], class_: str
) -> None:
    """Events are not always sorted by time: their age says what came first."""
    found = matcher.classify("\n".join(lines), whole_log=True, platform="kubernetes")
    assert (found.class_, found.certain and found.benign) == (class_, False)


MOUNT = '  Warning  FailedMount  9m  kubelet  MountVolume.SetUp failed for volume "models" : timed out'


def ended(code: int) -> list[str]:
    return ["    State:          Terminated", "      Reason:       Error", f"      Exit Code:    {code}"]


@pytest.mark.parametrize("mount", [[], [MOUNT]], ids=["", "a volume that came late"])
@pytest.mark.parametrize(
    ("code", "class_"), [(1, "engine_dead"), (2, "engine_dead"), (137, "host_oom"), (139, "illegal_memory_access")]
)
def test_a_container_that_was_started_may_have_ended(
    matcher: Matcher, mount: list[str], code: int, class_: str
) -> None:
    text = "\n".join([*ended(code), "Events:", *mount, DESCRIBED[2]])
    found = matcher.classify(text, whole_log=True, platform="kubernetes")
    assert (found.class_, found.certain) == (class_, False)


def test_that_a_container_was_started_is_no_certain_health(matcher: Matcher) -> None:
    """Not with what the platform says before it either; tokens of the server are."""
    pulled = '  Normal   Pulled   9m  kubelet  Successfully pulled image "vllm:1" in 9s'
    for lines in (DESCRIBED[1:], [DESCRIBED[2]], [pulled, *DESCRIBED[1:]]):
        found = matcher.classify("\n".join(lines), whole_log=True, platform="kubernetes")
        assert (found.benign, found.certain) == (True, False)
    up = "\n".join([pulled, *DESCRIBED[1:], *HEALTHY_START])
    assert matcher.classify(up, whole_log=True, platform="kubernetes").certain


PULL = [
    '  Warning  Failed   3m  kubelet  Failed to pull image "lamp/vllm:7": rpc error: code = Canceled desc = toomanyrequests: You have reached your unauthenticated pull rate limit',
    '  Normal   BackOff  3m  kubelet  Back-off pulling image "lamp/vllm:7"',
]
PULLED = '  Normal   Pulled   1m  kubelet  Successfully pulled image "lamp/vllm:7" in 1m2s'


@pytest.mark.parametrize(
    ("below", "class_"),
    [
        ([PULLED], "benign"),
        ([PULLED.replace("vllm:7", "sidecar:7")], "image_pull_failed"),
        ([PULLED.replace("1m  kubelet", "9m  kubelet")], "image_pull_failed"),
        ([RUNS], "image_pull_failed"),
    ],
    ids=["the same", "another's", "before", "a container of the pod"],
)
def test_an_image_that_was_pulled_in_the_end_is_there(matcher: Matcher, below: list[str], class_: str) -> None:
    """Another image, or an earlier pull of the same, proves nothing."""
    nameless = "  Warning  Failed   3m  kubelet  Error: ImagePullBackOff"
    assert (
        matcher.classify("\n".join([PULL[0], nameless, *below]), whole_log=True, platform="kubernetes").class_ == class_
    )
    assert matcher.classify("\n".join([*PULL, *below]), whole_log=True, platform="kubernetes").class_ == class_


@pytest.mark.parametrize(
    ("conditions", "class_"),
    [
        (["Ready             True ", "ContainersReady   True "], "benign"),
        (["Ready             False ", "ContainersReady   False "], "startup_probe_failed"),
        (["Ready             True ", "ContainersReady   False "], "startup_probe_failed"),
        ([], "startup_probe_failed"),
    ],
    ids=["ready", "not ready", "one of two", "not told"],
)
def test_a_pod_that_is_ready_got_over_its_probes(matcher: Matcher, conditions: list[str], class_: str) -> None:
    """Events stay for an hour; what the pod is now stands above them. A memory limit that it met stays a failure."""
    told = [
        "Conditions:",
        *(f"  {one}" for one in conditions),
        "Events:",
        "  Normal  Created  6m  kubelet  Created container: vllm",
    ]
    probe = '  Warning  Unhealthy  3m (x12 over 5m)  kubelet  Readiness probe failed: Get "http://10.1.2.3:8000/health": EOF'
    assert matcher.classify("\n".join([*told, probe]), whole_log=True, platform="kubernetes").class_ == class_
    killed = ["    Last State:     Terminated", "      Reason:       OOMKilled"]
    found = matcher.classify("\n".join([*killed, *told, probe]), whole_log=True, platform="kubernetes")
    assert found.class_ == "host_oom"
