"""The container that serves, which start of it runs, and its lines as signals."""

from datetime import UTC, datetime

import pytest

from agent.core.intake.kubernetes_log import RunningStart, printed_signal, running_start, serving_container

AT = datetime(2026, 11, 22, 10, 0, 1, 5, tzinfo=UTC)
OWNER = {"kind": "ReplicaSet", "name": "vllm-7d9f8b6c5", "controller": True}
POD = {"metadata": {"name": "vllm-7d9f8b6c5-x2x4z", "uid": "u", "ownerReferences": [OWNER]}}
GPU = {"limits": {"nvidia.com/gpu": "1"}}


def of(*containers):
    return {"spec": {"containers": list(containers)}}


@pytest.mark.parametrize(
    ("pod", "named", "found"),
    [
        (of({"name": "proxy"}, {"name": "vllm", "resources": GPU}), None, "vllm"),
        (of({"name": "proxy"}, {"name": "vllm", "resources": GPU}), "proxy", "proxy"),
        (of({"name": "one"}, {"name": "two"}), None, "one"),
        ({}, None, ""),
    ],
    ids=["by its accelerator", "by its name", "the first", "none"],
)
def test_the_container_that_serves(pod, named, found):
    assert serving_container(pod, named) == found


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"state": {"running": {"startedAt": "2026-11-22T10:00:00Z"}}, "restartCount": 3, "ready": True},
         RunningStart(datetime(2026, 11, 22, 10, tzinfo=UTC), 3, True)),
        ({"state": {"running": {}}}, RunningStart(None, 0, False)),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}, None),
        ({"state": {"terminated": {"exitCode": 1}}}, None),
        ({}, None),
    ],
    ids=["it runs", "nobody says since when", "waits", "ended", "nothing said"],
)  # fmt: skip
def test_the_start_that_runs(row, found):
    pod = {"status": {"containerStatuses": [{"name": "other"}, {"name": "vllm"} | row]}}
    assert running_start(pod, "vllm") == found


def test_a_line_is_a_signal_of_its_pod_and_known_by_its_stamp_and_words():
    """Whoever reads the line again makes the same key; the next one at the same microsecond does not."""

    def made(stamp="2026-11-22T10:00:01.000005123Z", line="boom"):
        return printed_signal("gemma", POD, "vllm", stamp=stamp, at=AT, line=line)

    signal = made()
    assert (signal.service, signal.revision, signal.instance) == ("gemma", "vllm-7d9f8b6c5", "vllm-7d9f8b6c5-x2x4z")
    assert (signal.at, signal.text, signal.end) == (AT, "boom", None)
    assert made().key == signal.key
    assert len({signal.key, made(stamp="2026-11-22T10:00:01.000005124Z").key, made(line="other").key}) == 3
