"""R1 on a real control plane: a real kill -9 before and after every effect of a change and of its undo."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

from agent.adapters.platform.kubernetes.template import effects_of
from agent.adapters.platform.rehearsal.scenario import load_scenario
from tests.contracts.vllm_http import VllmHttp
from tests.counts import spread, tries
from tests.journeys.conftest import ROOT
from tests.journeys.on_kubernetes import EXAMPLE
from tests.kube import rig

pytestmark = pytest.mark.xdist_group("kube")
KILLS = tries(4, ci=1000, soak=1000)  # at most all of them
CARDS = 64
DEADLINE_S = 600  # longer than a journey: a failure is known by its crash loop, and no race with a deadline is meant


class Agents:
    """The warmed process that is forked for each journey, and the workloads that it is given."""

    def __init__(self, cluster, folder, *, comes_up):
        self.cluster, self.folder, self.count = cluster, folder, 0
        self.vllm = VllmHttp()
        self.config = load_scenario(ROOT / "examples" / EXAMPLE / "scenario.toml").live.config
        life, failing = rig("kubelet").Life, list(self.config.args)
        cluster.life = lambda pod: (
            life.READY if comes_up and pod.spec.containers[0].args != failing else life.OOM_KILLED
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.journeys.killed_on_kubernetes"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, kill):
        """Return how a journey on a workload of its own ended, and what stands in the cluster then."""
        name, self.count = f"w{self.count}", self.count + 1
        folder = self.folder / name
        folder.mkdir()
        path = self.cluster.path("deployments", name)
        command = {"command": list(self.config.command)}
        self.cluster.deploy(name, list(self.config.args), container=command, deadline_s=DEADLINE_S)
        self.cluster.until(lambda: self.cluster._ended(name, "deployments"))
        before = self.cluster.api.get(path)["spec"]
        case = {
            "folder": str(folder),
            "example": EXAMPLE,
            "kubeconfig": str(self.cluster.plane.kubeconfig),
            "namespace": self.cluster.namespace,
            "workload": name,
            "url": self.vllm.url,
            "kill": kill,
            "real": True,
        }
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        outcome = json.loads(self.process.stdout.readline())
        assert "broke" not in outcome, (kill, outcome["broke"])
        calls = outcome.pop("calls")
        stands = self.stands(path, name, before)
        self.cluster.api.delete(path, uid=stands.pop("uid"))  # its pods give processors and memory back
        return outcome | stands, calls

    def stands(self, path, name, before):
        """What the API server holds: each change of ``spec`` or stamp is a generation."""
        body = self.cluster.api.get(path)
        sets = self.cluster.api.items(self.cluster.path("replicasets"), query={"labelSelector": f"app={name}"})
        return {
            "uid": body["metadata"]["uid"],
            "generation": body["metadata"]["generation"],
            "effects": len(effects_of(body)),
            "writers": sorted(e["manager"] for e in body["metadata"]["managedFields"]),
            "replica_sets": len(sets),
            "args": body["spec"]["template"]["spec"]["containers"][0]["args"],
            "strategy": body["spec"]["strategy"],
            "as_before": body["spec"] == before,
        }

    def close(self):
        self.process.communicate(timeout=30)
        self.vllm.stop()


@contextmanager
def agents(cluster, folder, *, comes_up):
    with cluster.play():
        made = Agents(cluster, folder, comes_up=comes_up)
        try:
            yield made
        finally:
            made.close()


def boundaries(calls):
    """Return every effect, and the first of what is stored again while it is waited for; before and after it."""
    numbered = [f"{label} #{n}" for label, count in calls.items()
                for n in range(1, 2 if label.startswith("store.") else count + 1)]  # fmt: skip
    return [(at, before) for at in numbered for before in (True, False)]


@pytest.mark.parametrize("comes_up", [True, False], ids=["resolved", "undone"])
def test_killed_at_any_effect_it_ends_as_if_never_killed(kube_cluster, tmp_path, comes_up):
    """One change for one approval, the same end, and an undo that is equal to the byte."""
    with agents(kube_cluster(gpus=CARDS), tmp_path, comes_up=comes_up) as running:
        smooth, calls = running.tell(None)
        assert (smooth["phase"] == "RESOLVED", smooth["as_before"]) == (comes_up, not comes_up)
        assert (smooth["approved"], calls["platform.apply"], calls["control.begin"]) == (1, 1, 1)
        assert calls.get("platform.restore", 0) == (0 if comes_up else 2)
        among = boundaries(calls)
        tried = min(KILLS, len(among))
        for number in range(tried):
            kill = among[spread(number, tried, len(among))]
            assert running.tell(kill)[0] == smooth, kill
