"""Actions change what they name; what Azure would refuse is refused before anything is sent, in words."""

import copy

import pytest

from agent.adapters.platform.container_apps.app_ref import AppRef, Environment, Profile, Seen
from agent.adapters.platform.container_apps.describe import config_of
from agent.adapters.platform.container_apps.edit import LONGEST_START_S, PROBE_LIMITS, edited
from agent.adapters.platform.container_apps.lifecycle import new_app
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.core.plan.action import (
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetLivenessProbe,
    SetModel,
    SetProgressDeadline,
    SetResources,
    SetScaling,
    SetStartupProbe,
    SetTerminationGrace,
    SetVolumeOptions,
    applied,
)
from agent.core.service.serving import EnvVar, Probe, ServingConfig
from agent.errors import InputRejected
from agent.ports.platform import Order
from tests.contracts.arm_world import body_of

REF = AppRef(subscription="s", group="llm", name="gemma", accelerator="nvidia-l40s")
PROFILES = (
    Profile(name="gpu", kind="Consumption-GPU-NC24-A100"),
    Profile(name="small", kind="Consumption-GPU-NC8as-T4"),
    Profile(name="big", kind="NC96-A100"),
    Profile(name="next", kind="Consumption-GPU-NC40-H100"),
    Profile(name="Consumption", kind="Consumption"),
)
ENVIRONMENT = Environment(id="e", location="swedencentral", profiles=PROFILES)
HTTP = Probe(kind="http", path="/health", port=8080, period_s=30, timeout_s=5, failure_threshold=20)
CONFIG = ServingConfig(
    image="vllm/vllm-openai:v0.32.0",
    args=("--model", "m", "--max-model-len", "8192"),
    env=(EnvVar(name="A", value="1"), EnvVar(name="HF_TOKEN", secret="hf")),
    cpu=24,
    memory_mib=225280,
    accelerator="nvidia-a100-80gb",
    min_instances=1,
    max_instances=1,
    startup_probe=HTTP,
)


def seen(config=CONFIG, *, profile=None, change=lambda _: None):
    body = body_of(config)
    body["properties"]["workloadProfileName"] = profile or body["properties"]["workloadProfileName"]
    change(body["properties"]["template"])
    return Seen(ref=REF, body=body, revisions=(), environment=ENVIRONMENT)


GOOD = {
    "a flag": SetFlag(name="max-model-len", value="4096"),
    "a variable that is there": SetEnv(name="A", value="2"),
    "a new variable": SetEnv(name="B", value="2"),
    "a variable taken away": SetEnv(name="A", value=None),
    "the model": SetModel(model="n"),
    "CPU and memory": SetResources(cpu=12, memory_mib=112640),
    "replicas": SetScaling(min_instances=0, max_instances=3),
    "another card": SetAccelerator(accelerator="nvidia-t4", cpu=8, memory_mib=57344),
    "the longest start": SetStartupProbe(
        probe=HTTP.with_(initial_delay_s=60, period_s=240, timeout_s=240, failure_threshold=30)
    ),
    "a liveness probe": SetLivenessProbe(probe=Probe(kind="tcp", port=8080, period_s=60, timeout_s=5)),
    "a grace": SetTerminationGrace(seconds=600),
}


@pytest.mark.parametrize("action", GOOD.values(), ids=GOOD)
def test_an_action_makes_what_core_makes_of_it(action):
    """And leaves the app as it was read alone."""
    now = seen()
    before = copy.deepcopy(now.body)
    template, profile = edited(now, (action,))
    after = now.with_(
        body=now.body | {"properties": now.properties | {"template": template, "workloadProfileName": profile}}
    )
    assert config_of(after) == applied(config_of(now), (action,))
    assert now.body == before


def probe(**how):
    return SetStartupProbe(probe=HTTP.with_(**how))


BAD = {
    "failures": (probe(failure_threshold=31), "failure threshold of the startup probe is 31, want 1 to 30"),
    "delay": (probe(initial_delay_s=61), "initial delay of the startup probe is 61, want 0 to 60"),
    "period": (probe(period_s=241, failure_threshold=2), "period of the startup probe is 241"),
    "gRPC": (probe(kind="grpc"), "is http or tcp, not grpc"),
    "no such start": (probe(period_s=240, failure_threshold=31), f"Container Apps waits {LONGEST_START_S} s at most"),
    "grace": (SetTerminationGrace(seconds=601), "600 s at most"),
    "replicas": (SetScaling(min_instances=0, max_instances=1001), "at most 1000 replicas"),
    "concurrency": (SetConcurrency(concurrency=4), "--max-num-seqs does"),
    "deadline": (SetProgressDeadline(seconds=60), "cannot be chosen"),
    "volumes": (SetVolumeOptions(volume="v", options=("x",)), "storage of the environment"),
    "no such card": (
        SetAccelerator(accelerator="nvidia-l4", cpu=8, memory_mib=32768),
        "no workload profile has 1 x nvidia-l4",
    ),
}


@pytest.mark.parametrize(("action", "says"), BAD.values(), ids=BAD)
def test_what_azure_refuses_is_refused_in_words(action, says):
    """With what would be taken, so that the next plan can be one."""
    with pytest.raises(InputRejected) as caught:
        edited(seen(), (action,))
    assert says in caught.value.why
    assert caught.value.hint


def test_a_shell_line_is_left_alone():
    now = seen(CONFIG.with_(command=("bash", "-c"), args=("vllm serve m --max-model-len 8192",)))
    with pytest.raises(InputRejected, match="shell line"):
        edited(now, (SetFlag(name="max-model-len", value="4096"),))


def test_the_limits_are_those_by_which_probes_are_planned():
    """agent/catalogue/startup.toml: a plan is never longer than what Azure takes."""
    limits = load_platform_catalogue().probe_limits["container_apps"]
    assert (limits.max_initial_delay_s, limits.max_period_s) == (
        PROBE_LIMITS["initial_delay_s"][1],
        PROBE_LIMITS["period_s"][1],
    )
    assert limits.max_failures == PROBE_LIMITS["failure_threshold"][1]
    assert LONGEST_START_S == 7260


CARDS = {"gpu": ("nvidia-a100-80gb", 1), "small": ("nvidia-t4", 1), "big": ("nvidia-a100-80gb", 4),
         "next": ("nvidia-l40s", 1), "Consumption": (None, 1), "gone": (None, 1)}  # fmt: skip


@pytest.mark.parametrize(("profile", "card"), CARDS.items(), ids=CARDS)
def test_the_card_is_the_workload_profiles(profile, card):
    """By its kind, whatever it is called; of a kind that is newer than our table, as services.toml says."""
    config = config_of(seen(profile=profile))
    assert (config.accelerator, config.accelerator_count) == card


def test_of_several_containers_the_server_is_the_one_that_is_named_or_names_vllm():
    def sidecar(template):
        template["containers"].insert(0, {"name": "logs", "image": "fluent"})

    assert config_of(seen(change=sidecar)).image == CONFIG.image

    def twins(template):
        template["containers"] = [template["containers"][0] | {"name": n} for n in ("vllm-a", "vllm-b")]

    with pytest.raises(InputRejected, match="none of several is plainly the server"):
        config_of(seen(change=twins))
    named = seen(change=twins)
    assert config_of(named.with_(ref=REF.with_(container="vllm-b"))).image == CONFIG.image
    with pytest.raises(InputRejected, match="no container 'gone'"):
        config_of(named.with_(ref=REF.with_(container="gone")))


def order():
    return Order(service="gemma", incident="i", effect_key="k", revision="gemma-sre-k", etag="absent", actions=())


@pytest.mark.parametrize(
    ("has_key", "flags", "external"), [(False, (), False), (True, (), True), (False, ("--api-key", "x"), True)]
)
def test_a_new_app_is_reached_from_the_internet_only_where_the_server_wants_a_key(has_key, flags, external):
    """Nobody publishes an open model server by a creation."""
    ref, config = REF.with_(has_key=has_key), CONFIG.with_(args=CONFIG.args + flags)
    body = new_app(ref, config, ENVIRONMENT, order())
    assert body["properties"]["configuration"]["ingress"]["external"] is external
    assert body["properties"]["workloadProfileName"] == "gpu"
    assert body["location"] == "swedencentral"


def test_a_new_app_without_such_a_card_is_refused():
    with pytest.raises(InputRejected, match="no workload profile has 1 x nvidia-l4"):
        new_app(REF, CONFIG.with_(accelerator="nvidia-l4"), ENVIRONMENT, order())
