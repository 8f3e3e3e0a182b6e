"""Incidents on EC2: from an alarm of EventBridge to a verified change of a unit or a container, or back to the byte."""

from copy import deepcopy

import pytest

from agent.core.change.verification import Check, Verdict
from agent.core.incident.phase import Phase
from agent.core.value import canonical
from tests.contracts.ec2_world import CONTAINER
from tests.journeys.on_ec2 import begin

pytestmark = pytest.mark.ec2


@pytest.fixture
def begun(tmp_path):
    """Begins on an instance of its own; ends it."""
    made = []

    def start(**how):
        told, world = begin(tmp_path, **how)
        made.append(world)
        return told, world

    yield start
    for world in made:
        world.close()


def go_on(told, world, reached):
    """Let both times go by: the journey's in steps, the instance's until what is under way has ended."""
    for _ in range(120):
        told.go(30, step=30)
        world.wait()
        found = told.incidents()[0]
        if reached(found):
            return found
    raise AssertionError(f"not reached: {[(i.phase, i.ended_why) for i in told.incidents()]}")


@pytest.mark.journey
def test_a_context_too_long_ends_resolved(begun):
    """The alarm says nothing of the cause: the unit's own journal does, and the figures it prints prove the plan."""
    told, world = begun()
    before = {p: p.read_bytes() for p in (world.unit_file, world.folder / "vllm.env")}
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    assert asked.diagnosis.class_ == "kv_cache_insufficient"
    told.answer(asked.plan.id)
    done = go_on(told, world, lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED), done.ended_why
    assert done.verification.latest(Check.COMPLETION).good is True
    assert done.verification.latest(Check.TOKENS).good is True
    live = world.platform.describe(world.service)
    assert live.ready
    assert before == {p: p.read_bytes() for p in before}, "the operator's files are never written"


def test_a_change_that_fails_is_undone_byte_by_byte(begun):
    """What ours put there is gone again, folder and all."""
    told, world = begun(longest="100")
    before = world.platform.describe(world.service)
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    told.answer(asked.plan.id)
    go_on(told, world, lambda i: i.ended or (i.phase is Phase.ASKED and i.plans_made > asked.plans_made))
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    assert world.platform.restored(world.service, template=before.template, traffic=traffic)
    assert [p.name for p in world.units.iterdir()] == ["vllm.service"]


def test_somebody_elses_change_before_ours_refuses_it(begun):
    """The approval covers the files that were shown."""
    told, world = begun()
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    world.unit_file.write_text(world.unit_file.read_text() + "Nice=5\n")
    files = sorted(world.units.rglob("*"))
    told.answer(asked.plan.id)
    go_on(told, world, lambda i: i.plans_made > asked.plans_made or i.ended)
    assert sorted(world.units.rglob("*")) == files


def test_a_container_with_too_long_a_context_is_made_anew_and_resolved(begun):
    """Its own log tells the cause, and the engine makes it once more: nothing but the length is another."""
    told, world = begun(bare=True)
    first = deepcopy(world.docker.named(CONTAINER))
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    assert asked.diagnosis.class_ == "kv_cache_insufficient"
    assert not world.docker.called, "nothing is touched before the approval"
    told.answer(asked.plan.id)
    done = go_on(told, world, lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED), done.ended_why
    assert done.verification.latest(Check.COMPLETION).good is True
    now = world.docker.named(CONTAINER)
    assert [c.partition(" ")[0] for c in world.docker.called].count("create") == 1
    assert (now["Id"] != first["Id"], now["Image"]) == (True, first["Image"])
    length = first["Config"]["Cmd"].index("131072")
    (action,) = done.plan.actions
    expected = [*first["Config"]["Cmd"]]
    expected[length] = action.value
    assert now["Config"]["Cmd"] == expected
    assert sorted(now["Config"]["Env"]) == sorted(first["Config"]["Env"])
    assert now["HostConfig"]["DeviceRequests"] == first["HostConfig"]["DeviceRequests"]


def test_a_container_that_fails_anew_gives_way_to_the_one_before(begun):
    """The prior container itself takes its name again, with its own arguments and its restart policy."""
    told, world = begun(longest="100", bare=True)
    first, before = deepcopy(world.docker.named(CONTAINER)), world.platform.describe(world.service)
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    told.answer(asked.plan.id)
    go_on(told, world, lambda i: i.ended or (i.phase is Phase.ASKED and i.plans_made > asked.plans_made))
    back = world.docker.named(CONTAINER)
    assert (back["Id"], back["Config"]) == (first["Id"], first["Config"])
    assert back["HostConfig"] == first["HostConfig"]
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    assert world.platform.restored(world.service, template=before.template, traffic=traffic)
    (kept,) = (c for c in world.docker.containers.values() if c["Id"] != first["Id"])
    assert f"{CONTAINER}-before-" in kept["Name"]
    assert kept["HostConfig"]["RestartPolicy"]["Name"] == "no"
