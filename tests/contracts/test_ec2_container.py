"""A bare container on EC2, over the engine's own wire: made anew once, kept and put back, and what goes wrong is typed."""

import json

import pytest

from agent.core.plan.action import Lifecycle, LifecycleOperation, Restart, SetEnv, SetFlag
from agent.core.service.serving import ServingConfig
from agent.core.value import canonical
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.platform import Order, Restore
from tests.contracts.docker_engine import IMAGE
from tests.contracts.ec2_world import CONTAINER, Ec2World
from tests.leases import HELD

pytestmark = pytest.mark.ec2

CONFIG = ServingConfig(args=("serve", "/mnt/models/gemma", "--max-model-len=8192"))
GOOD = SetFlag(name="max-model-len", value="4096")


@pytest.fixture
def world(tmp_path):
    made = Ec2World(tmp_path, "gemma", CONFIG, bare=True)
    yield made
    made.close()


def order(world, *actions, key="k1"):
    return Order(
        service="gemma", incident="inc-1", effect_key=key, revision=f"gemma-sre-{key}", lease_end=HELD,
        etag=world.platform.describe("gemma").etag, actions=actions or (GOOD,),
    )  # fmt: skip


def restored(world, before, key="u1"):
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    undo = Restore(
        service="gemma", incident="inc-1", effect_key=key, revision=f"gemma-sre-{key}", lease_end=HELD,
        etag=world.platform.describe("gemma").etag, template=before.template, traffic=traffic,
    )  # fmt: skip
    told = world.platform.restore(undo)
    world.wait()
    assert world.platform.operation(told.name).ok is True
    assert world.platform.restored("gemma", template=before.template, traffic=traffic)


def test_only_arguments_and_variables_change_and_the_undo_starts_the_one_before(world):
    """Devices, network, labels and secrets are the same; the container before is kept, by its id."""
    first, before = dict(world.docker.named(CONTAINER)), world.platform.describe("gemma")
    world.platform.apply(order(world, GOOD, SetEnv(name="VLLM_LOGGING_LEVEL", value="DEBUG")))
    world.wait()
    now = world.docker.named(CONTAINER)
    assert now["Id"] != first["Id"]
    assert now["Config"]["Cmd"][2:4] == ["--max-model-len", "4096"]
    assert set(now["Config"]["Env"]) == {*first["Config"]["Env"], "VLLM_LOGGING_LEVEL=DEBUG"}
    for part in ("NetworkMode", "DeviceRequests", "RestartPolicy"):
        assert part == "RestartPolicy" or now["HostConfig"][part] == first["HostConfig"][part]
    assert now["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
    assert now["Config"]["Labels"]["team"] == "llm"
    assert world.docker.named(first["Id"])["HostConfig"]["RestartPolicy"]["Name"] == "no"
    restored(world, before)
    back = world.docker.named(CONTAINER)
    assert (back["Id"], back["Config"]) == (first["Id"], first["Config"])
    assert back["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"


def test_a_container_before_that_was_pruned_is_made_again_with_the_same_arguments(world):
    """Somebody's nightly `docker container prune` takes stopped containers; what it ran is kept by us."""
    first, before = world.docker.named(CONTAINER), world.platform.describe("gemma")
    world.platform.apply(order(world))
    world.wait()
    del world.docker.containers[first["Id"]]
    restored(world, before)
    assert world.docker.named(CONTAINER)["Config"]["Cmd"] == first["Config"]["Cmd"]


@pytest.mark.parametrize("part", ["image", "mounts", "a secret"])
def test_a_kept_container_of_other_image_mounts_or_secrets_does_not_come_back(world, part):
    """Somebody made the container anew since, with the same arguments: theirs is what other arguments are given to."""
    first, before = world.docker.named(CONTAINER), world.platform.describe("gemma")
    world.platform.apply(order(world))
    world.wait()
    kept, now = world.docker.named(first["Id"]), world.docker.named(CONTAINER)
    if part == "image":
        now["Image"] = f"{IMAGE[:-2]}cd"
        world.docker.images.add(now["Image"])
    elif part == "mounts":
        now["HostConfig"]["Binds"] = ["/srv/models:/mnt/models"]
    else:
        now["Config"]["Env"] = [e.replace("sk-stays-here", "sk-turned") for e in now["Config"]["Env"]]
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    world.platform.restore(
        Restore(service="gemma", incident="inc-1", effect_key="k2", revision="gemma-sre-k2", lease_end=HELD,
                etag=world.platform.describe("gemma").etag, template=before.template, traffic=traffic)
    )  # fmt: skip
    made = world.docker.named(CONTAINER)
    assert made["Id"] not in {kept["Id"], now["Id"]}
    assert (made["Config"]["Cmd"], made["Image"]) == (kept["Config"]["Cmd"], now["Image"])
    assert sorted(made["Config"]["Env"]) == sorted(now["Config"]["Env"])
    assert made["HostConfig"].get("Binds") == now["HostConfig"].get("Binds", [])


def test_a_restart_starts_the_same_container_again(world):
    """What it wrote into its own layer, such as a downloaded model, stays."""
    own = world.docker.named(CONTAINER)["Id"]
    world.platform.apply(order(world, Restart()))
    world.wait()
    assert world.platform.find("gemma", "k1").ok is True
    assert world.docker.named(CONTAINER)["Id"] == own
    assert world.docker.called == [f"restart {own}"]


@pytest.mark.parametrize("step", ["create", "stop", "update", "rename", "start"])
def test_a_script_that_ended_between_two_steps_is_taken_up_once(world, step):
    """The engine answers no more after a step: the stamp is found, and the next try does what remains, once."""
    one = order(world)
    world.docker.refuses = {f"/{step}": (500, "the engine is gone")}
    if step == "create":  # nothing was done: the same order is tried again
        with pytest.raises(InputRejected, match="the engine is gone"):
            world.platform.apply(one)
        assert world.platform.find("gemma", "k1") is None
    elif step == "start":  # the engine's word on the new container: it ends badly
        world.platform.apply(one)
        assert (world.platform.find("gemma", "k1").ok, world.platform.describe("gemma").ready) == (False, False)
        return
    else:
        with pytest.raises(DependencyFailed):
            world.platform.apply(one)
        assert world.platform.find("gemma", "k1").remains
    world.docker.refuses = {}
    again = world.open()
    again.apply(one)
    world.wait()
    again.apply(one)
    assert again.find("gemma", "k1").ok is True
    made = [c for c in world.docker.called if c.startswith("start ")]
    assert len(made) == 1, "it is started once"
    assert len(world.docker.containers) == 2


def test_somebody_elses_container_in_between_is_a_conflict(world):
    """The digest is compared on the instance, under a lock, right before the new one is made."""
    one, seen = order(world), world.platform.look("gemma")
    world.docker.named(CONTAINER)["HostConfig"]["Memory"] = 1
    with pytest.raises(StateConflict, match="changed since it was read"):
        world.platform._change(seen, one, seen.report["text"].replace("8192", "4096"), resumes=False)
    assert len(world.docker.containers) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"AutoRemove": True}, "started with --rm"),
        ({"RestartPolicy": {"Name": "no"}}, "docker update --restart unless-stopped vllm"),
    ],
)
def test_what_a_stop_would_delete_or_not_bring_back_is_refused(world, change, why):
    """Nothing is stopped for it."""
    world.docker.named(CONTAINER)["HostConfig"] |= change
    stop = Lifecycle(operation=LifecycleOperation.STOP)
    with pytest.raises((InputRejected, PolicyRefused), match=why):
        world.platform.apply(order(world, GOOD if "AutoRemove" in change else stop))
    assert world.docker.named(CONTAINER)["State"]["Running"]
    assert not world.docker.called


def test_no_secret_leaves_the_instance_and_a_shell_hides_the_flags(world):
    """Variables are sent by name; a shell that starts the server is read as a doubt."""
    world.platform.measure("gemma", str(world.platform.describe("gemma").latest_ready_revision))
    said = json.dumps(list(world.ssm._told.values()), default=str) + json.dumps(world.ssm.sent)
    assert "sk-stays-here" not in said
    assert ["VLLM_API_KEY", None] in world.platform.look("gemma").report["env"]
    world.docker.named(CONTAINER)["Config"] |= {"Entrypoint": ["/bin/bash", "-c"], "Cmd": ["vllm serve m"]}
    with pytest.raises(InputRejected, match="a shell"):
        world.platform.describe("gemma")


def test_an_engine_that_is_down_and_a_container_that_is_gone_are_named(world):
    """Where to look differs."""
    world.docker.named(CONTAINER)["Name"] = "/other"
    with pytest.raises(InputRejected, match="no container 'vllm'"):
        world.platform.describe("gemma")
    (world.folder / "docker.sock").unlink()
    with pytest.raises(DependencyFailed, match="did not answer at"):
        world.platform.describe("gemma")
