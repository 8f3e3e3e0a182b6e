"""A service that is to be created: what its owner declared stands, and what was left open is filled in and proved."""

import pytest

from agent.app.catalogues import read_capacity
from agent.catalogue.load_bundled import load_default_policy
from agent.core.decision.policy import Policy
from agent.core.plan.action import LifecycleOperation
from agent.core.planning.creation import creation
from agent.core.planning.requested import check_policy
from agent.core.service.container_args import flag_map, with_flag
from agent.core.service.services import Services, parse_services
from agent.core.service.serving import Volume
from agent.errors import InputRejected

ENTRY = {
    "name": "gemma",
    "platform": "cloud_run",
    "project": "example-project",
    "location": "us-central1",
    "model": "google/gemma-4-26B-A4B-it-qat-w4a16-ct",
    "checkpoint": "/mnt/models/gemma-4",
    "mounts": {"/mnt/models": "gs://example-models/all"},
    "accelerator": "nvidia-l4",
    "vllm": "0.22.1",
    "owner": "console",
    "needs": {"context": 16384, "users": 4},
}


def services(**changes: object) -> Services:
    return parse_services({"service": [ENTRY | changes]})


def made(**changes: object):
    watched = services(**changes)
    return creation(watched.services[0], read_capacity(watched))


def test_flags_are_filled_in_until_the_arithmetic_says_that_it_fits() -> None:
    """The needs lead to the context; what does not fit by itself gets the flags that make it fit."""
    action = made()
    assert action.operation is LifecycleOperation.CREATE
    config = action.config
    flags = flag_map(config.args)
    assert read_capacity(services()).assess("gemma", config).fits is True
    assert int(flags["max-model-len"]) >= 16384
    assert flags["model"] == "/mnt/models/gemma-4"
    assert (config.image, config.cpu, config.memory_mib) == ("vllm/vllm-openai:v0.22.1", 8.0, 32768)
    assert (config.min_instances, config.max_instances, config.concurrency) == (0, 1, 4)


def test_the_probe_allows_what_the_start_takes_and_the_engine_waits_as_long() -> None:
    """Computed from the size of the checkpoint and the rate of the mount, with room, and never above the limit."""
    config = made().config
    budget = config.startup_probe.budget_s
    slowest = read_capacity(services()).start_up("gemma", config, seen_s=None).seconds
    assert min(slowest * 1.5, 1800) <= budget <= 1815
    assert {e.name: e.value for e in config.env}["VLLM_ENGINE_READY_TIMEOUT_S"] == str(budget)
    (volume,) = config.volumes
    assert (volume.mount_path, volume.bucket, volume.options) == ("/mnt/models", "example-models", ("only-dir=all",))


def test_what_is_declared_stands() -> None:
    """The owner's word is not exchanged; what they left open is computed."""
    declared = {"image": "example/vllm:v1", "flags": "--max-model-len 8192 --port 8080", "max_instances": 2, "cpu": 4}
    config = made(declared=declared).config
    flags = flag_map(config.args)
    assert (config.image, config.max_instances, config.cpu) == ("example/vllm:v1", 2, 4)
    assert (flags["port"], config.startup_probe.port) == ("8080", 8080)


def test_a_platform_with_one_number_of_replicas_gets_one() -> None:
    """A Deployment cannot have 0 to 2."""
    config = made(
        platform="kubernetes",
        mounts={},
        checkpoint=ENTRY["model"],
        declared={"max_instances": 2, "min_instances": 0},
    ).config
    assert (config.min_instances, config.max_instances) == (2, 2)


def test_the_default_policy_allows_what_is_filled_in_once_the_service_is_named() -> None:
    """A creation that no policy could allow would be no help."""
    policy: Policy = load_default_policy().with_(lifecycle=("gemma",), accelerators=("nvidia-l4",))
    policy.check((made(),), "gemma")


@pytest.mark.parametrize(
    ("asked", "entry", "says"),
    [
        ({"model": "google/other"}, {}, "its model is 'google/gemma-4"),
        ({"accelerator": "nvidia-h100-80gb"}, {}, "its accelerator is 'nvidia-l4'"),
        ({"platform": "kubernetes"}, {}, "its platform is 'cloud_run'"),
        ({}, {"vllm": None}, "neither its image nor its version"),
    ],
)
def test_what_services_toml_does_not_say_is_refused(asked, entry, says) -> None:
    """Only what services.toml names is created, as it names it."""
    watched = services(**entry)
    with pytest.raises(InputRejected, match=says):
        creation(watched.services[0], read_capacity(watched), **asked)


OTHER = {
    "image": lambda c: {"image": "example.com/not-ours:v1"},
    "model": lambda c: {"args": with_flag(c.args, "model", "example/not-ours")},
    "served in another way": lambda c: {"args": ("serve", "example/not-ours", *c.args)},
    "command": lambda c: {"command": ("python3", "/mnt/models/run.py")},
    "mounts": lambda c: {"volumes": (Volume(name="v", mount_path="/mnt/models", bucket="not-ours"),)},
    "accelerator": lambda c: {"accelerator": "nvidia-rtx-pro-6000"},
    "accelerator_count": lambda c: {"accelerator_count": 8},
}


@pytest.mark.parametrize("what", OTHER)
def test_a_program_asks_for_no_other_creation_than_services_toml_names(what: str) -> None:
    """A request is typed actions, whoever made them: an image that nobody named is refused before anybody is asked."""
    watched = services()
    policy = load_default_policy().with_(lifecycle=("gemma",), accelerators=("nvidia-l4", "nvidia-rtx-pro-6000"))
    action = made()
    check_policy(watched.services[0], (action,), policy)
    other = action.with_(config=action.config.with_(**OTHER[what](action.config)))
    with pytest.raises(InputRejected, match=r"services\.toml says that its"):
        check_policy(watched.services[0], (other,), policy)


def test_a_pod_that_could_not_mount_its_checkpoint_is_refused_before_anybody_is_asked() -> None:
    with pytest.raises(InputRejected, match="which claim holds '/mnt/models'"):
        made(platform="kubernetes")
