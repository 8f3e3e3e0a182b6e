"""A rolling update on the only card: from the cluster's own signals to the change that frees it, and back."""

import pytest

from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetStrategy
from agent.core.service.services import parse_services
from agent.core.service.serving import Strategy
from agent.ports.stage_context import Owner
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.contracts.kube_world import KubeWorld
from tests.journeys.test_cluster_monitor import Watching
from tests.kube import rig

pytestmark = [pytest.mark.xdist_group("kube"), pytest.mark.slow]
ARGS = ("serve", "google/gemma-3-1b-it", "--max-model-len=4096")
LONGER = "--max-model-len=8192"


class Stuck:
    """A Deployment whose new pod waits for the card that its old, ready pod holds, and the agent that watches it."""

    def __init__(self, cluster, folder):
        self.world = KubeWorld(cluster, "vllm", ARGS, spare=0, deadline_s=3)
        service = {"name": "vllm", "platform": "kubernetes", "namespace": cluster.namespace, "owner": "console",
                   "model": "google/gemma-3-1b-it", "accelerator": "nvidia-l4", "vllm": "0.22.1"}  # fmt: skip
        self.watch = Watching(
            cluster,
            folder,
            services=parse_services({"service": [service]}),
            platform=self.world.platform,
            wait_factor=120,
        )
        args = {"op": "replace", "path": "/spec/template/spec/containers/0/args/2", "value": LONGER}
        cluster.api.patch(self.world.path, [args])

    def approve(self, plan):
        word = DecisionRequest(
            plan=plan, answer=Choice.APPROVE, by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False), why=""
        )
        return plan_to_decision(self.watch.app.contexts[Owner.DECIDE], word)

    def close(self):
        self.watch.stop()
        self.world.close()


@pytest.fixture
def stuck(kube_cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("agent.entrypoints.monitor.cluster_monitor.PENDING_S", 1.0)  # a wait like the others
    made = Stuck(kube_cluster(gpus=1), tmp_path / "w")
    yield made
    made.close()


def asked(incident):
    """Both what the scheduler says and what the Deployment says is known."""
    return incident.phase is Phase.ASKED and incident.plan.cause == "rollout_deadlock_no_spare_gpu"


def test_the_rollout_that_waits_for_its_own_card_is_freed_and_served(stuck):
    """Signal, class, plan with its downtime, approval, Recreate, one real completion."""
    with stuck.world.cluster.play():
        incident = stuck.watch.until(asked)
        assert incident.plan.actions == (SetStrategy(strategy=Strategy(kind="Recreate")),)
        (downtime,) = [note for note in incident.plan.notes if "the service is down" in note]
        assert "serves now and is ended" in downtime
        stuck.approve(incident.plan.id)
        done = stuck.watch.until(lambda i: i.ended)
    assert done.phase is Phase.RESOLVED, done.ended_why
    spec = stuck.world.body()["spec"]
    assert (spec["strategy"], spec["template"]["spec"]["containers"][0]["args"][2]) == ({"type": "Recreate"}, LONGER)


def test_where_the_freed_pod_fails_the_strategy_comes_back_and_nobody_says_that_the_old_pod_serves(stuck):
    """Byte-equal; the old pod was ended by the change, so the way back does not bring it back."""
    with stuck.world.cluster.play():
        incident = stuck.watch.until(asked)
        spec = stuck.world.body()["spec"]
        assert incident.plan.undo.endswith("is ended by the change and does not come back by itself")
        stuck.world.cluster.life = lambda _: rig("kubelet").Life.OOM_KILLED
        stuck.approve(incident.plan.id)
        stuck.watch.until(lambda i: i.ended or i.plans_made > incident.plans_made)
    said = [e.what for e in stuck.watch.app.store.timeline(incident.id) if e.phase is Phase.ROLLED_BACK]
    assert "was ended by the change and is not known to serve again" in said[0]
    assert stuck.world.body()["spec"] == spec
