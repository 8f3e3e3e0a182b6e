"""The node's script: one container as the metadata says, started once, and a report of what became of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.adapters.platform.tpu_vm import on_node
from agent.core.service.serving import EnvVar, Probe, ServingConfig, Volume
from tests.contracts import docker_stand_in
from tests.contracts.host_world import FAKE
from tests.contracts.tpu_world import TpuWorld, node_of
from tests.waiting import until

CONFIG = ServingConfig(image="vllm/vllm-tpu:nightly", args=("serve", "m", "--max-model-len", "4096"), max_instances=1)


@pytest.fixture
def world(tmp_path: Path):
    """A node that serves."""
    made = TpuWorld(tmp_path, "gemma", CONFIG)
    yield made
    made.close()


def give(world: TpuWorld, revision: str, **changes) -> dict:
    """Give the node other metadata and let its script take one step."""
    config = world.config.with_(**changes)
    fresh = node_of("gemma", config).metadata["vllm-server"]
    asked = json.loads(fresh) | {"revision": revision}
    world.cloud.nodes[world.name].metadata["vllm-server"] = json.dumps(asked)
    return world.script.step()


def runs(world: TpuWorld) -> int:
    return len(world.docker_calls("run"))


def test_the_same_revision_is_never_started_twice(world: TpuWorld) -> None:
    """Steps, and a script that was started anew, find the container that runs."""
    world.script.step()
    world.booted().step()
    assert runs(world) == 1


def test_a_container_that_ended_stays_ended(world: TpuWorld) -> None:
    """It is reported, and nothing starts it again but another revision."""
    on_node.docker("stop", on_node.NAME)
    world.wait()
    status = world.script.step()
    assert (status["state"], runs(world)) == ("failed", 1)
    assert status["says"].startswith("the container ended with exit code ")
    assert "before it served" not in status["says"]
    assert give(world, "gemma-2")["state"] == "starting"
    assert runs(world) == 2


def test_a_node_that_was_started_again_starts_its_container_once(world: TpuWorld) -> None:
    """What runs after a start of the node is what the metadata says, in a container of this start."""
    world.script = world.booted("boot-2")
    world.wait()
    assert (runs(world), world.script.step()["state"]) == (2, "ready")
    assert len(world.docker_calls("rm")) == 1


def test_an_image_that_is_not_there_is_asked_for_once(world: TpuWorld) -> None:
    """Docker's own words are the report, and a script that was started anew does not try again."""
    status = give(world, "gemma-2", image="vllm/missing:nope")
    assert (status["state"], runs(world)) == ("failed", 2)
    assert "manifest for vllm/missing:nope not found" in status["says"]
    world.script.step()
    assert world.booted().step()["state"] == "failed"
    assert runs(world) == 2


def test_a_start_that_takes_longer_than_the_probe_allows_is_ended(world: TpuWorld) -> None:
    """Nothing of it is left, and it is not begun again."""
    world.environ["FAKE_START_S"] = "60"
    give(world, "gemma-2", startup_probe=Probe(period_s=1, timeout_s=1, failure_threshold=1))
    status = until(lambda: world.script.step()["state"] == "failed" and world.script.step(), limit_s=10)
    assert status["says"] == "the server did not answer its health check within 1 s, and was ended"
    assert world.script.step()["state"] == "failed"
    assert runs(world) == 2
    assert status["ready_revision"] == "gemma-1"


WRONG = {
    "no JSON": "{",
    "a list": "[]",
    "a key twice": '{"revision": "r", "revision": "s", "config": {"image": "i"}}',
    "no revision": '{"config": {"image": "i"}}',
    "no image": '{"revision": "r", "config": {}}',
    "an option for an image": '{"revision": "r", "config": {"image": "--privileged"}}',
    "a number among the words": '{"revision": "r", "config": {"image": "i", "args": [1]}}',
    "an option for a variable": '{"revision": "r", "config": {"image": "i", "env": [{"name": "--rm x", "value": "1"}]}}',
    "a variable without a name": '{"revision": "r", "config": {"image": "i", "env": [{}]}}',
    "a volume that is a list": '{"revision": "r", "config": {"image": "i", "volumes": [[]]}}',
    "a volume with an option": '{"revision": "r", "config": {"image": "i", "volumes": [{"name": "/a:/b", "mount_path": "/c"}]}}',
    "memory in words": '{"revision": "r", "config": {"image": "i", "memory_mib": "much"}}',
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_metadata_that_cannot_be_run_leaves_the_container_alone(world: TpuWorld, text: str) -> None:
    """It is reported as failed; what serves goes on serving."""
    world.cloud.nodes[world.name].metadata["vllm-server"] = text
    status = world.script.step()
    assert (status["state"], runs(world), status["ready_revision"]) == ("failed", 1, "gemma-1")
    assert json.loads(on_node.docker("inspect", on_node.NAME).stdout)[0]["State"]["Running"]


def test_metadata_that_is_missing_is_reported(world: TpuWorld) -> None:
    del world.cloud.nodes[world.name].metadata["vllm-server"]
    assert world.script.step()["says"].startswith("the metadata attribute vllm-server was not read")


def test_no_shell_reads_a_word(world: TpuWorld, tmp_path: Path) -> None:
    """Words full of a shell's signs reach the program as they are."""
    hostile = ("$(touch pwned)", "`touch pwned`", "; touch pwned", "a b", "'", '"', "--rm", "\n")
    config = world.config.with_(args=(*world.config.args, *hostile))
    give(world, "gemma-2", args=config.args, env=(EnvVar(name="X", value="$(touch pwned) --rm"),))
    run = world.docker_calls("run")[-1]
    assert tuple(run[-len(hostile) :]) == hostile
    assert run[run.index("--env") + 1] == "X=$(touch pwned) --rm"
    assert run.index("--rm") > run.index(config.image)
    assert not list(tmp_path.rglob("pwned"))


def test_a_secret_comes_from_secret_manager_and_stands_in_no_word(world: TpuWorld) -> None:
    """It is in the container's environment; a secret that cannot be read starts nothing and ends nothing."""
    give(world, "gemma-2", env=(EnvVar(name="VLLM_API_KEY", secret="vllm-api-key"),))
    kept = json.loads((world.folder / f"{on_node.NAME}.json").read_text())
    assert kept["environ"]["VLLM_API_KEY"] == "node-key"
    assert "node-key" not in (world.folder / "calls").read_text() + json.dumps(world.cloud.guest)
    status = give(world, "gemma-3", env=(EnvVar(name="HF_TOKEN", secret="nobodys"),))
    assert (status["state"], runs(world)) == ("failed", 2)
    assert status["says"].startswith("secret 'nobodys' was not read: ")


def test_volumes_memory_and_an_entry_point_are_dockers_options(world: TpuWorld) -> None:
    volumes = (
        Volume(name="/mnt/models", mount_path="/models"),
        Volume(name="/c", mount_path="/cache", read_only=False),
    )
    give(world, "gemma-2", command=("python3", "-m"), volumes=volumes, memory_mib=1024)
    run = world.docker_calls("run")[-1]
    assert [run[i + 1] for i, word in enumerate(run) if word == "--volume"] == ["/mnt/models:/models:ro", "/c:/cache"]
    assert (run[run.index("--memory") + 1], run[run.index("--entrypoint") + 1]) == ("1024m", "python3")
    assert run[run.index(CONFIG.image) + 1] == "-m"


def test_a_node_that_is_taken_back_says_so(world: TpuWorld, capsys: pytest.CaptureFixture) -> None:
    """In its report, and in a line of its journal and serial port."""
    world.metadata.preempted = True
    assert world.script.step()["preempted"] is True
    assert "sre-agent: TPU node preempted" in capsys.readouterr().out
    assert world.platform.describe("gemma").message.startswith("the node is being taken back (preempted); ")


@pytest.mark.slow
def test_the_script_itself_runs_alone_and_takes_up_what_changes(world: TpuWorld, tmp_path: Path) -> None:
    """As on a node: a process of its own with nothing but Python, the metadata server and docker."""
    programs = tmp_path / "bin"
    programs.mkdir()
    docker = docker_stand_in.__file__
    (programs / "docker").write_text(f'#!/bin/sh\nexec {sys.executable} -S {docker} "$@"\n')
    (programs / "docker").chmod(0o755)
    environ = world.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "GCE_METADATA_HOST": world.metadata.host}
    assert json.loads(environ["DOCKER_RUNS"])[1] == str(FAKE)
    alone = tmp_path / "startup-script"
    alone.write_text(Path(on_node.__file__).read_text())
    process = subprocess.Popen(
        [sys.executable, "-I", str(alone), "--stay"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        asked = json.loads(world.cloud.nodes[world.name].metadata["vllm-server"]) | {"revision": "gemma-9"}
        world.cloud.nodes[world.name].metadata["vllm-server"] = json.dumps(asked)
        path = "sre-agent/status"
        until(
            lambda: json.loads(world.cloud.guest[path])["ready_revision"] == "gemma-9", lambda: str(world.cloud.guest)
        )
    finally:
        process.kill()
        print(process.communicate(timeout=10)[0].decode())
