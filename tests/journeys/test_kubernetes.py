"""Incidents on a real control plane: from the recorded words of a failure to a verified change, or back to the byte."""

import pytest

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from agent.core.change.verification import Check, Verdict
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetStrategy
from agent.core.value import canonical
from tests.contracts.kube_world import KubeWorld
from tests.journeys.conftest import ROOT
from tests.kube import rig

pytestmark = pytest.mark.xdist_group("kube")
EXAMPLE = "gemma4-31b-l4-oom"


@pytest.fixture
def begun(journey, kube_cluster):
    """Begins the example with a Deployment on the only card of its cluster; its flags are those that fail."""
    made = []

    def on_kubernetes(settings, clock):
        scenario = load_scenario(ROOT / "examples" / EXAMPLE / "scenario.toml")
        config, life = scenario.live.config, rig("kubelet").Life
        cluster = kube_cluster()
        failing = list(config.args)
        cluster.life = lambda pod: life.OOM_KILLED if pod.spec.containers[0].args == failing else life.READY
        container = {"command": list(config.command)} if config.command else {}
        made.append(KubeWorld(cluster, scenario.service, config.args, spare=0, container=container))
        logs = open_environment(settings, read_services(settings), clock).logs
        platform = made[0].platform
        return RuntimeEnvironment(platform_of=lambda name: platform if name == scenario.service else None, logs=logs)

    yield lambda: (journey(EXAMPLE, environment=on_kubernetes), made[0])
    for world in made:
        world.close()


def go_on(told, world, reached):
    """Let both times go by: the journey's in steps, the cluster's as it is."""

    def stepped():
        told.go(5, step=5)
        found = told.incidents()[0]
        return found if reached(found) else None

    return world.cluster.until(stepped, 120)


def test_out_of_memory_on_the_only_card_ends_resolved(begun):
    """Flags that fit, Recreate beside them, one real completion."""
    told, world = begun()
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    assert asked.plan.actions[-1] == SetStrategy.model_validate({"strategy": {"kind": "Recreate"}})
    assert any("no accelerator is spare" in note for note in asked.plan.notes)
    with world.cluster.play():
        told.answer(asked.plan.id)
        done = go_on(told, world, lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED), done.ended_why
    assert done.verification.latest(Check.COMPLETION).good is True
    assert world.body()["spec"]["strategy"] == {"type": "Recreate"}
    assert done.execution.revision_native.startswith(f"{world.service}-")


def test_a_change_that_fails_is_undone_byte_by_byte_with_its_strategy(begun):
    """Both steps of the undo belong to one intent."""
    told, world = begun()
    before, spec = world.platform.describe(world.service), world.body()["spec"]
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    world.cluster.life = lambda _: rig("kubelet").Life.OOM_KILLED
    with world.cluster.play():
        told.answer(asked.plan.id)
        go_on(told, world, lambda i: i.ended or i.phase is Phase.ASKED)
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    assert world.platform.restored(world.service, template=before.template, traffic=traffic)
    assert world.body()["spec"] == spec


def test_somebody_elses_change_before_ours_refuses_it(begun):
    """The approval covers the state that was shown."""
    told, world = begun()
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    world.cluster.api.patch(world.path, [{"op": "add", "path": "/spec/minReadySeconds", "value": 1}])
    spec = world.body()["spec"]
    told.answer(asked.plan.id)
    go_on(told, world, lambda i: i.phase in {Phase.REFUSED, Phase.ASKED} and i.plans_made > asked.plans_made)
    assert world.body()["spec"] == spec


def test_a_change_that_somebody_reverts_ends_inconclusive_and_says_who(begun):
    """As Argo CD does whose self-heal nobody could see: it is no failure of the change, and no success."""
    told, world = begun()
    template = world.body()["spec"]["template"]
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    told.answer(asked.plan.id)
    go_on(told, world, lambda i: world.body()["spec"]["template"] != template)
    with world.cluster.api.stream(
        "PATCH",
        world.path,
        query={"fieldManager": "argocd-controller"},
        headers={"Content-Type": "application/json-patch+json"},
        body=[{"op": "replace", "path": "/spec/template", "value": template}],
    ):
        pass
    with world.cluster.play():
        judged = go_on(told, world, lambda i: i.verification is not None and i.verification.verdict is not None)
    assert judged.verification.verdict is Verdict.INCONCLUSIVE
    assert "'argocd-controller'" in judged.verification.why
