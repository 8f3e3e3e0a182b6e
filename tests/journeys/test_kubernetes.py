"""Incidents on a real control plane: from the recorded words of a failure to a verified change, or back to the byte."""

import pytest

from agent.core.change.verification import Check, Verdict
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetStrategy
from agent.core.value import canonical
from tests.journeys.on_kubernetes import begin, go_on
from tests.kube import rig

pytestmark = pytest.mark.xdist_group("kube")


@pytest.fixture
def begun(journey, kube_cluster):
    """Begins the example; closes its server at the end."""
    made = []

    def start(**how):
        told, world = begin(journey, kube_cluster(), **how)
        made.append(world)
        return told, world

    yield start
    for world in made:
        world.close()


@pytest.mark.journey
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


@pytest.mark.parametrize("kind", ["deployments", "statefulsets"])
def test_a_change_that_fails_is_undone_byte_by_byte_with_its_strategy(begun, kind):
    """Both steps of the undo belong to one intent; of a StatefulSet both also end the pod that it would wait for."""
    told, world = begun(kind=kind)
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
        spec = world.body()["spec"]
        done = go_on(told, world, lambda i: i.ended)
    assert done.phase is Phase.ESCALATED
    assert "last changed by 'argocd-controller'" in done.ended_why
    assert world.body()["spec"] == spec
