"""A model on a TPU v6e-4 whose memory share leaves no HBM: from the node's log to a share that fits, on Cloud TPU's own wire."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from agent.core.change.execution import EffectKind
from agent.core.change.verification import Check, Verdict
from agent.core.incident.phase import Phase
from agent.core.value import canonical
from agent.entrypoints.cli.doctor.platforms import tpu_nodes
from agent.errors import SettingsRejected
from agent.settings import read_settings
from tests.contracts.tpu_world import TpuWorld

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "gemma4-e2b-tpu-v6e-hbm"
SHARE = {"FAKE_FITS_SHARE": "0.92", "FAKE_FITS_LEN": "16384", "FAKE_KNOWS_ALL": "1"}


@pytest.fixture
def on_tpu(journey: Callable, tmp_path: Path) -> Iterator[Callable]:
    """Begins the example with a node in the place of the rehearsal; its log stays the recorded one."""
    made: list[TpuWorld] = []

    def begin(**environ: str):
        def environment(settings, clock) -> RuntimeEnvironment:
            scenario = load_scenario(ROOT / "examples" / EXAMPLE / "scenario.toml")
            folder = tmp_path / "containers"
            folder.mkdir()
            made.append(TpuWorld(folder, scenario.service, scenario.live.config, **(SHARE | environ)))
            platform = made[0].platform
            logs = open_environment(settings, read_services(settings), clock).logs
            return RuntimeEnvironment(
                platform_of=lambda name: platform if name == scenario.service else None, logs=logs
            )

        return journey(EXAMPLE, environment=environment), made[0]

    yield begin
    for world in made:
        world.close()


def go_on(told, world: TpuWorld, reached: Callable):
    for _ in range(200):
        world.wait()
        told.go(10, step=10)
        found = told.incidents()[0]
        if reached(found):
            return found
    raise AssertionError(f"not reached: {found.phase} {found.ended_why}")


def asked(told):
    return told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)


@pytest.mark.journey
@pytest.mark.tpu
def test_a_share_that_leaves_no_hbm_is_lowered_and_verified(on_tpu) -> None:
    """One change of the metadata, one container more, and a real completion says that it helped."""
    told, world = on_tpu()
    before = world.platform.describe(world.service)
    assert (before.ready, before.message) == (False, "the container ended with exit code 1 before it served")
    found = asked(told)
    assert (found.cause, found.plan.proof) == ("tpu_hbm_oom", "computed")
    assert {d.path for d in found.plan.difference} == {"flag --gpu-memory-utilization"}
    told.answer(found.plan.id)
    done = go_on(told, world, lambda i: i.ended)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED), done.ended_why
    assert done.verification.latest(Check.COMPLETION).good is True
    assert world.cloud.calls.count("UpdateNode") == 1
    assert len(world.docker_calls("run")) == 2
    after = world.platform.describe(world.service)
    assert after.stamps == {done.execution.revision_after: done.execution.effect(EffectKind.APPLY).key}
    assert after.ready is True


def traffic_of(live) -> str:
    return canonical([t.model_dump(mode="json") for t in live.traffic]).decode()


@pytest.mark.tpu
def test_a_share_that_does_not_help_is_undone_to_the_byte(on_tpu) -> None:
    """The prior metadata stands again but for revision and stamp, and the next plan is made."""
    told, world = on_tpu(FAKE_FITS_SHARE="0.1")
    before = world.platform.describe(world.service)
    told.answer(asked(told).plan.id)
    first = told.incidents()[0].plan
    back = go_on(told, world, lambda i: i.ended or (i.phase is Phase.ASKED and i.plan.id != first.id))
    assert world.platform.restored(world.service, template=before.template, traffic=traffic_of(before)), back.ended_why
    assert world.cloud.calls.count("UpdateNode") == 2
    assert world.platform.describe(world.service).config == before.config


@pytest.mark.tpu
def test_what_somebody_else_changed_in_between_is_kept(on_tpu) -> None:
    """Approved was the state before: nothing is written over theirs, and a new plan is made for it."""
    told, world = on_tpu()
    found = asked(told)
    metadata = world.cloud.nodes[world.name].metadata
    metadata["vllm-server"] = metadata["vllm-server"].replace("16384", "8192")
    theirs = dict(metadata)
    told.answer(found.plan.id)
    after = go_on(told, world, lambda i: i.ended or (i.phase is Phase.ASKED and i.plan.id != found.plan.id))
    assert (dict(metadata), world.cloud.calls.count("UpdateNode")) == (theirs, 0), after.ended_why
    assert [r.applied for r in after.remedies] == [False]


@pytest.mark.tpu
@pytest.mark.parametrize("carried_out", [True, False], ids=["carried out, answer lost", "not carried out"])
def test_an_answer_that_did_not_come_is_one_change_all_the_same(on_tpu, carried_out: bool) -> None:
    """Whether or not Cloud TPU made it: one container more, and the incident ends well."""
    told, world = on_tpu()
    found = asked(told)
    if carried_out:
        world.cloud.lose["UpdateNode"] = grpc.StatusCode.UNAVAILABLE
    else:
        world.cloud.refuse["UpdateNode"] = (grpc.StatusCode.UNAVAILABLE, "try again")
    told.answer(found.plan.id)
    done = go_on(told, world, lambda i: i.ended)
    assert (done.phase, len(world.docker_calls("run"))) == (Phase.RESOLVED, 2), done.ended_why


@pytest.mark.tpu
def test_a_spot_node_that_is_taken_back_while_it_is_verified_is_told(on_tpu) -> None:
    """The change did not fail: there is no node any more, and a person is told what holds the quota."""
    told, world = on_tpu()
    told.answer(asked(told).plan.id)
    go_on(told, world, lambda i: i.phase in {Phase.APPLYING, Phase.VERIFYING})
    world.suspend()
    ended = go_on(told, world, lambda i: i.ended)
    assert ended.phase is Phase.ESCALATED
    assert world.cloud.calls.count("UpdateNode") == 1


@pytest.mark.tpu
def test_the_settings_open_the_adapter_and_the_doctor_looks_at_each_node(on_tpu, tmp_path: Path) -> None:
    """PLATFORM=tpu_vm:PROJECT over the stand-in: the service is described, and what is missing is named."""
    _, world = on_tpu()
    toml = (ROOT / "examples" / EXAMPLE / "services.toml").read_text().replace('scenario = "scenario.toml"\n', "")
    (tmp_path / "services.toml").write_text(toml)
    environ = {
        "PLATFORM": "tpu_vm:example-project",
        "SERVICES": str(tmp_path / "services.toml"),
        "TPU_EMULATOR_HOST": world.cloud.address,
        "STORE": f"sqlite:{tmp_path / 'state'}",
    }
    settings = read_settings(environ)
    services = read_services(settings)
    platform = open_environment(settings, services, SystemClock()).platform_of(world.service)
    assert platform is not None
    assert platform.describe(world.service).message == "the container ended with exit code 1 before it served"
    now = datetime.now(UTC)
    assert [f.says for f in tpu_nodes(settings, services, now)] == ["services.toml names no queued_resource"]
    metadata = world.cloud.nodes[world.name].metadata
    metadata["enable-guest-attributes"] = "FALSE"
    metadata["vllm-server"] = json.dumps(
        {"revision": "r", "config": {"image": "i", "env": [{"name": "HF_TOKEN", "value": "hf_x"}]}}
    )
    says = " ".join(f.says for f in tpu_nodes(settings, services, now))
    assert "guest attributes are off" in says
    assert "the variable HF_TOKEN stands in the metadata" in says


@pytest.mark.parametrize(
    ("old", "new"),
    [('location = "southamerica-west1-a"\n', ""), ('"example-project"', '"another"')],
    ids=["no zone", "another project"],
)
def test_services_that_the_setting_does_not_cover_are_refused(old: str, new: str, tmp_path: Path) -> None:
    """What is missing in services.toml is said before anything runs."""
    toml = (ROOT / "examples" / EXAMPLE / "services.toml").read_text().replace('scenario = "scenario.toml"\n', "")
    (tmp_path / "services.toml").write_text(toml.replace(old, new))
    settings = read_settings({"PLATFORM": "tpu_vm:example-project", "SERVICES": str(tmp_path / "services.toml")})
    with pytest.raises(SettingsRejected, match="has nothing to work on"):
        open_environment(settings, read_services(settings), SystemClock())
