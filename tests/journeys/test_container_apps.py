"""Incidents on Container Apps' own wire: from the rows of a failure to a verified revision, or back to the byte."""

import pytest

from agent.core.change.execution import EffectKind
from agent.core.change.verification import Check, Verdict
from agent.core.incident.phase import Phase
from agent.core.value import canonical
from tests.contracts import arm_server as arm
from tests.journeys.on_container_apps import begin, go_on

pytestmark = pytest.mark.azure


@pytest.fixture
def begun(journey):
    """Begins the example; closes its servers at the end."""
    made = []

    def start(**how):
        told, world = begin(journey, **how)
        made.append(world)
        return told, world

    yield start
    for world in made:
        world.close()


def asked(told):
    return told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)


def approved(begun, *, before_apply=lambda _: None, **how):
    told, world = begun(**how)
    plan = asked(told).plan
    before = world.open().describe(world.service)
    before_apply(world)
    told.answer(plan.id)
    return told, world, before


@pytest.mark.journey
def test_an_fp8_cache_on_an_a100_closes_by_itself(begun):
    """The seed's case: a data type that the card does not have, `auto` in its place, one revision, one completion."""
    told, world, before = approved(begun)
    done = go_on(told, lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED), done.ended_why
    assert done.verification.latest(Check.COMPLETION).good is True
    assert "flag --kv-cache-dtype" in {d.path for d in done.plan.difference}
    after = world.open().describe(world.service)
    assert after.stamps == {done.execution.revision_after: done.execution.effect(EffectKind.APPLY).key}
    assert (after.traffic, after.ready) == (before.traffic, True)
    ((method, _, patch),) = world.arm.writes
    assert (method, set(patch), set(patch["properties"])) == ("PATCH", {"properties"}, {"template"})
    assert set(patch["properties"]["template"]) == {"containers", "revisionSuffix"}  # the arrays that changed, whole
    assert done.execution.revision_native == world.arm.revisions(world.service)[-1]


def test_a_revision_that_crashes_is_undone_byte_by_byte(begun):
    """Two changes of the app: there and back; template and traffic are those of before."""
    told, world, before = approved(begun, before_apply=lambda w: setattr(w, "fate", arm.Fate(up=False)))
    back = go_on(told, lambda i: i.ended or i.phase is Phase.ASKED)
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    platform = world.open()
    assert platform.restored(world.service, template=before.template, traffic=traffic), back.ended_why
    assert platform.describe(world.service).config == before.config
    assert [method for method, _, _ in world.arm.writes] == ["PATCH", "PATCH"]


FATES = {
    "a crash": (arm.Fate(up=False, error="ContainerCrashing"), "ContainerCrashing"),
    "no reason": (arm.Fate(up=False, error="Activation failed"), "Activation failed"),
    "the deadline": (
        arm.Fate(up=False, error="Deployment Progress Deadline Exceeded. 0/1 replicas ready."),
        "Deployment Progress Deadline Exceeded",
    ),
}


@pytest.mark.parametrize(("fate", "says"), FATES.values(), ids=FATES)
def test_what_azure_says_of_a_revision_stands_in_the_verification(begun, fate, says):
    """In its own words, where it has any."""
    told, _, _ = approved(begun, before_apply=lambda w: setattr(w, "fate", fate))
    judged = go_on(told, lambda i: i.verification is not None and i.verification.verdict is not None)
    assert judged.verification.verdict is not Verdict.RECOVERED
    said = [m.says for m in judged.verification.measurements] + [judged.verification.why or ""]
    said += [e.message for e in judged.execution.effects]
    assert any(says in text for text in said), said


def test_a_replica_that_gets_no_room_is_undone_when_azure_lets_go_of_it(begun):
    """Stuck in AssigningReplica: no failure and no success; Azure refuses the undo until the operation has ended."""
    told, world, before = approved(begun, before_apply=lambda w: setattr(w, "fate", arm.Fate(assigns=False)))
    waits = go_on(told, lambda i: i.phase is Phase.ROLLING_BACK)
    assert "AssigningReplica" in waits.execution.effect(EffectKind.APPLY).message
    assert waits.verification.verdict is Verdict.INCONCLUSIVE
    told.go(600, step=60)
    assert [method for method, _, _ in world.arm.writes] == ["PATCH"]
    assert told.incidents()[0].phase is Phase.ROLLING_BACK
    world.arm.deactivate_newest(world.service)
    world.fate = None
    go_on(told, lambda i: i.phase is not Phase.ROLLING_BACK)
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    assert world.open().restored(world.service, template=before.template, traffic=traffic)
    assert [method for method, _, _ in world.arm.writes] == ["PATCH", "PATCH"]


def test_somebody_elses_change_before_ours_refuses_it(begun):
    """The approval covers the state that was shown."""
    told, world, _ = approved(
        begun,
        before_apply=lambda w: w.arm.edit(
            w.service, {"properties": {"template": {"terminationGracePeriodSeconds": 60}}}
        ),
    )
    go_on(told, lambda i: i.phase in {Phase.REFUSED, Phase.ASKED} and i.plans_made > 1)
    assert world.arm.writes == []


def test_somebody_elses_revision_after_ours_is_left_alone(begun):
    """Somebody mended it otherwise meanwhile: nothing is put back over that, and a person has it."""
    told, world, _ = approved(begun, before_apply=lambda w: setattr(w, "fate", arm.Fate(up=False, after_s=60)))
    go_on(told, lambda i: i.phase is Phase.APPLYING)
    world.watch.step(120)
    world.arm.edit(world.service, {"properties": {"template": {"terminationGracePeriodSeconds": 60}}})
    ended = go_on(told, lambda i: i.ended)
    assert ended.phase is Phase.ESCALATED
    assert len(world.arm.writes) == 1
    assert world.arm.revisions(world.service)[-1].endswith("--by-hand")


def test_an_app_that_was_made_again_meanwhile_is_left_alone(begun):
    """Deleted and made again under its name: the approval was for the one before."""
    told, world, _ = approved(begun, before_apply=lambda w: setattr(w, "fate", arm.Fate(up=False)))
    go_on(told, lambda i: i.phase is Phase.APPLYING)
    world.arm.apps[world.arm._id(world.service)]["systemData"]["createdAt"] = "2026-11-21T09:00:00+00:00"
    ended = go_on(told, lambda i: i.ended)
    assert ended.phase is Phase.ESCALATED
    assert "made again" in ended.ended_why
    assert len(world.arm.writes) == 1


@pytest.mark.parametrize(
    ("status", "applied"), [(0, True), (503, False)], ids=["applied, answer lost", "503, not applied"]
)
def test_a_lost_answer_is_one_change_all_the_same(begun, status, applied):
    """Whether or not it was made: the app gets one revision, and the incident ends well."""
    fault = arm.Fault("PATCH", "containerApps", status=status, code="ServiceUnavailable", applied=applied)
    told, world, _ = approved(begun, before_apply=lambda w: w.arm.faults.append(fault))
    done = go_on(told, lambda i: i.ended)
    assert (done.phase, len(world.arm.writes), world.arm.faults) == (Phase.RESOLVED, 1, [])
