"""Whole services on one volume: one holds the Lease and works, the next follows it when it is killed or paused."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
import requests

from tests.waiting import until

pytestmark = [pytest.mark.xdist_group("kube"), pytest.mark.slow]
LIMIT_S = 120.0
UP = """
import sys
from agent.adapters.kubernetes import lease
lease.DURATION_S, lease.SPARE_S, lease.RENEW_S, lease.RETRY_S = 6.0, 2.0, 0.5, 0.1
from agent.entrypoints.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""The command, with the times of its Lease divided by two or more."""


class Replica:
    """One process of ``sre-agent up``."""

    def __init__(self, environ, folder, number):
        self.path = folder / f"{number}.txt"
        with self.path.open("w") as out:
            words = [sys.executable, "-c", UP, "up", "--port", "0"]
            self.process = subprocess.Popen(words, env=environ, stderr=out, cwd=folder)

    def said(self, words):
        return re.search(words, self.path.read_text())

    def says(self, words):
        until(
            lambda: self.said(words) or self.process.poll() is not None,
            lambda: self.path.read_text()[-2000:],
            limit_s=LIMIT_S,
        )
        return self.said(words)

    @property
    def url(self):
        return self.says(r"console:  (\S+)")[1]

    def close(self):
        for number in (signal.SIGCONT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
        self.process.wait(20)


@pytest.fixture
def place(kube_cluster, tmp_path):
    """A cluster with a Deployment, and one state folder for all replicas."""
    cluster, made = kube_cluster(), []
    (tmp_path / "services.toml").write_text(
        f"""[[service]]
name = "vllm"
platform = "kubernetes"
namespace = "{cluster.namespace}"
workload = "deployment/vllm"
model = "google/gemma-3-27b-it"
accelerator = "nvidia-l4"
owner = "console"
"""
    )
    environ = {**os.environ, "PLATFORM": "kubernetes", "KUBECONFIG": str(cluster.plane.kubeconfig),
               "STORE": f"sqlite:{tmp_path / 'state'}", "SERVICES": str(tmp_path / "services.toml"),
               "LEASE": f"{cluster.namespace}/sre-agent", "HF_HUB_OFFLINE": "on"}  # fmt: skip

    def replica():
        made.append(Replica(environ, tmp_path, len(made)))
        return made[-1]

    cluster.deploy("vllm", ["--max-model-len=4096"])
    replica.cluster = cluster
    yield replica
    for one in made:
        one.close()


def holder(cluster):
    found = cluster.api.find(f"/apis/coordination.k8s.io/v1/namespaces/{cluster.namespace}/leases/sre-agent")
    return found and found["spec"]["holderIdentity"]


def test_one_works_the_others_wait_and_follow_who_was_killed_or_paused(place):
    """A killed leader is followed after its Lease; a paused one keeps the folder until it notices, and then ends."""
    replicas = [place() for _ in range(3)]
    first = until(lambda: next((r for r in replicas if r.said("console:")), None), limit_s=LIMIT_S)
    waiting = [r for r in replicas if r is not first]
    assert all(r.says("leader.waits") for r in waiting)
    assert not any(r.said("console:") for r in waiting)
    first.process.kill()
    second = until(lambda: next((r for r in waiting if r.said("console:")), None), limit_s=LIMIT_S)
    (third,) = [r for r in waiting if r is not second]
    assert requests.get(f"{second.url}healthz", timeout=30).status_code == 200

    was = holder(place.cluster)
    before = place.cluster.api.get(place.cluster.path("deployments", "vllm"))
    second.process.send_signal(signal.SIGSTOP)
    until(lambda: holder(place.cluster) != was, limit_s=LIMIT_S)
    assert not third.said("console:"), "the paused one may be in the middle of a write"
    second.process.send_signal(signal.SIGCONT)
    assert second.process.wait(LIMIT_S) == 3
    assert second.said("leader.lost")
    assert requests.get(f"{third.url}healthz", timeout=30).status_code == 200
    after = place.cluster.api.get(place.cluster.path("deployments", "vllm"))
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    third.process.send_signal(signal.SIGTERM)
    assert third.process.wait(LIMIT_S) == 0
    assert holder(place.cluster) == ""
