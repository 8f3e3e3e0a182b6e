"""Which start's log explains a trouble: the one that ended, or the one that runs."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from agent.adapters.logs.kubernetes import KubernetesLogs, PodLogs
from tests.agent.adapters.kubernetes.test_client import server

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
ENDED = {"lastState": {"terminated": {"exitCode": 137, "finishedAt": "2026-11-22T10:00:00Z"}}}
RUNS = {"state": {"running": {"startedAt": "2026-11-22T10:00:01Z"}}}


def pod_with(row):
    """Serves one pod, and its log with what was asked for as its only line."""

    def answer(request):
        path = urlsplit(request.path)
        which = "previous" if "previous" in parse_qs(path.query) else "present"
        told = {"name": "vllm-0", "namespace": "llm", "uid": "u"}
        spec = {"containers": [{"name": "proxy"}, {"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
        pod = {"metadata": told, "spec": spec, "status": {"containerStatuses": [{"name": "vllm"} | row]}}
        return 200, f"2026-11-22T10:00:00.000000001Z {which}\n".encode() if path.path.endswith("/log") else pod

    return answer


@pytest.mark.parametrize(
    ("row", "told_at", "which"),
    [
        (ENDED | {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}, NOW, "previous"),
        (ENDED | RUNS, NOW, "previous"),
        (ENDED | RUNS, NOW + timedelta(minutes=5), "previous"),
        (ENDED | RUNS, NOW + timedelta(days=30), "present"),
        (RUNS, NOW, "present"),
        ({"state": {"terminated": {"exitCode": 1}}}, NOW, "present"),
    ],
    ids=[
        "it waits for its next start",
        "it runs again at once",
        "it may fail over and over",
        "an end of last month does not explain today",
        "its first start",
        "it ended and stays so",
    ],
)
def test_the_log_is_that_of_the_start_that_failed(tmp_path, row, told_at, which):
    with server(pod_with(row), tmp_path) as api:
        logs = KubernetesLogs(lambda _: PodLogs(api=api, namespace="llm", container=None))
        found = logs.instance_log("vllm", revision=None, instance="vllm-0", until=told_at)
    assert [line.text for line in found.lines] == [which]
