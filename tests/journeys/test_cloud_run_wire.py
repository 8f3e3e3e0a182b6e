"""From the recorded events of a failed L4 rollout to one update on Cloud Run's own wire, verified or undone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf import json_format

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from agent.core.change.execution import EffectKind
from agent.core.change.verification import Check, Verdict
from agent.core.incident.phase import Phase
from agent.core.value import canonical
from tests.contracts import cloud_run_world as worlds

ROOT = Path(__file__).resolve().parents[2]
PROBE = "gemma4-26b-l4-startup-probe"


@pytest.fixture
def on_cloud_run(journey: Callable) -> Iterator[Callable]:
    """Begins the example with the wire in the place of the rehearsal; its logs stay the recorded ones."""
    made = []

    def on_the_wire(settings, clock) -> RuntimeEnvironment:
        scenario = load_scenario(ROOT / "examples" / PROBE / "scenario.toml")
        body = worlds.body_of(scenario.service, scenario.live.config, ready=False)
        made.append(worlds.CloudRunWorld(scenario.service, recorded=body, watch=clock))
        platform = made[0].open()
        logs = open_environment(settings, read_services(settings), clock).logs
        return RuntimeEnvironment(platform_of=lambda name: platform if name == scenario.service else None, logs=logs)

    yield lambda: (journey(PROBE, environment=on_the_wire), made[0])
    for world in made:
        world.close()


def approved(
    on_cloud_run: Callable,
    fate,
    before_apply: Callable = lambda _: None,
    before_ask: Callable = lambda _: None,
):
    told, world = on_cloud_run()
    world.fate = fate
    before_ask(world)
    before = world.open().describe(world.service)
    asked = told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    before_apply(world)
    told.answer(asked.plan.id)
    return told, world, before


def go_on(told, reached: Callable, *, limit_s: float = 7200):
    for _ in range(int(limit_s // 20)):
        told.go(20, step=20)
        found = told.incidents()[0]
        if reached(found):
            return found
    raise AssertionError(f"not reached: {found.phase} {found.ended_why}")


def test_one_update_with_the_planned_difference_ends_resolved(on_cloud_run) -> None:
    """The probe is longer, nothing else differs, and a real completion says that it helped."""
    told, world, before = approved(on_cloud_run, worlds.server.Fate(up=True, after_s=787.2))
    done = go_on(told, lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED)
    assert done.verification.latest(Check.COMPLETION).good is True
    assert len(world.stand_in.updates) == 1
    sent = json_format.MessageToDict(world.stand_in.updates[0].service.template)
    prior = json.loads(before.template)
    changed = {d.path.split()[0] for d in done.plan.difference if not d.path.startswith("env ")}
    assert changed == {"startup_probe"}
    for template in (sent, prior):
        template["containers"][0].pop("startupProbe")
    added = [e for e in sent["containers"][0]["env"] if e not in prior["containers"][0]["env"]]
    assert {f"env {e['name']}" for e in added} == {d.path for d in done.plan.difference if d.path.startswith("env ")}
    sent["containers"][0]["env"] = prior["containers"][0]["env"]
    assert {k: v for k, v in sent.items() if k not in {"labels", "revision"}} == prior
    after = world.open().describe(world.service)
    assert after.stamps == {done.execution.revision_after: done.execution.effect(EffectKind.APPLY).key}
    assert after.traffic == before.traffic


@pytest.mark.parametrize("applied", [True, False], ids=["applied, answer lost", "not applied, no answer"])
@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED], ids=lambda c: c.name)
def test_a_lost_answer_is_one_change_all_the_same(on_cloud_run, code, applied: bool) -> None:
    """Whether or not it was made: the service gets one update, and the incident ends well."""
    told, world, _ = approved(
        on_cloud_run, worlds.server.Fate(up=True, after_s=787.2), lambda w: fail(w, code, applied)
    )
    done = go_on(told, lambda i: i.ended)
    assert (done.phase, len(world.stand_in.updates)) == (Phase.RESOLVED, 1)


def fail(world, code, applied: bool) -> None:
    world.stand_in.fail("UpdateService", code, applied=applied)


def test_a_rollout_that_fails_ends_on_the_exact_prior_template(on_cloud_run) -> None:
    """Two changes of the service: there and back; template and traffic are those of before."""
    told, world, before = approved(on_cloud_run, worlds.server.Fate(up=False, after_s=787.2))
    back = go_on(told, lambda i: i.ended or i.phase is Phase.ASKED)
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    platform = world.open()
    assert platform.restored(world.service, template=before.template, traffic=traffic), back.ended_why
    assert len(world.stand_in.updates) == 2
    assert [list(u.update_mask.paths) for u in world.stand_in.updates] == [["template"], ["template", "traffic"]]
    assert platform.describe(world.service).config == before.config


def test_a_revision_that_serves_all_the_while_is_named_in_the_plan_and_after_the_way_back(
    on_cloud_run,
) -> None:
    """A rollout that fails leaves the traffic on the revision before: the service is not down, and nobody is told so."""

    def served(world) -> None:
        older = f"{world.name}/revisions/older-00004-h7x"
        world.stand_in.edit(world.name, lambda pb: setattr(pb, "latest_ready_revision", older))

    fate = worlds.server.Fate(up=False, after_s=787.2)
    told, _, _ = approved(on_cloud_run, fate, before_ask=served)
    undo = told.incidents()[0].plan.undo
    assert undo.endswith("it did not come up before either, and older-00004-h7x serves meanwhile")
    back = go_on(told, lambda i: i.ended or i.phase is Phase.ASKED)
    said = [e.what for e in told.installation.store.timeline(back.id) if e.phase is Phase.ROLLED_BACK]
    assert said == [
        "the prior template is back; it did not come up before either, and older-00004-h7x serves as before"
    ]


def test_traffic_that_a_person_pinned_meanwhile_stays_where_it_is(on_cloud_run) -> None:
    """Somebody mended it for now by pinning what works: nothing is put back over it, and a person has it."""

    def pinned(pb) -> None:
        del pb.traffic[:]
        pb.traffic.add(type_=2, revision="older-00004-h7x", percent=100)

    told, world, _ = approved(on_cloud_run, worlds.server.Fate(up=False, after_s=787.2))
    go_on(told, lambda i: i.phase is Phase.APPLYING)
    world.stand_in.edit(world.name, pinned)
    ended = go_on(told, lambda i: i.ended)
    assert ended.phase is Phase.ESCALATED
    assert "its traffic goes to older-00004-h7x (100 %), and we left it at the latest (100 %)" in ended.ended_why
    assert len(world.stand_in.updates) == 1
    assert [t.revision for t in world.open().describe(world.service).traffic] == ["older-00004-h7x"]


def test_a_service_that_was_made_again_meanwhile_is_left_alone(on_cloud_run) -> None:
    """Deleted and made again under its name: the approval was for the one before."""
    told, world, _ = approved(on_cloud_run, worlds.server.Fate(up=False, after_s=787.2))
    go_on(told, lambda i: i.phase is Phase.APPLYING)
    world.stand_in.edit(world.name, lambda pb: setattr(pb, "uid", "another"))
    ended = go_on(told, lambda i: i.ended)
    assert ended.phase is Phase.ESCALATED
    assert "made again" in ended.ended_why
    assert len(world.stand_in.updates) == 1
