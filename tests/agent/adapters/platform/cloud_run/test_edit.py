"""Typed actions change what they name in a template, nothing else, or are refused by name."""

import json
from collections.abc import Callable

import pytest
from google.cloud import run_v2
from google.protobuf import json_format

from agent.adapters.platform.cloud_run.describe import config_of
from agent.adapters.platform.cloud_run.edit import edited
from agent.core.plan.action import (
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetLivenessProbe,
    SetModel,
    SetResources,
    SetScaling,
    SetStartupProbe,
    SetVolumeOptions,
)
from agent.core.service.serving import EnvVar, Probe
from agent.errors import InputRejected

BODY = {
    "serviceAccount": "vllm@example.iam.gserviceaccount.com",
    "annotations": {"owner": "llm"},
    "vpcAccess": {"egress": "ALL_TRAFFIC"},
    "scaling": {"minInstanceCount": 1, "maxInstanceCount": 1},
    "timeout": "3600s",
    "maxInstanceRequestConcurrency": 16,
    "nodeSelector": {"accelerator": "nvidia-l4"},
    "containers": [
        {
            "name": "vllm",
            "image": "vllm/vllm-openai:v0.32.0",
            "command": ["vllm"],
            "args": [
                "serve",
                "/mnt/models/gemma",
                "--limit-mm-per-prompt",
                '{"image":4}',
                "--max-model-len=32768",
                "--port=$(PORT_VAR)",
            ],
            "env": [
                {"name": "HF_HUB_OFFLINE", "value": "1"},
                {"name": "KEY", "valueSource": {"secretKeyRef": {"secret": "projects/p/secrets/key", "version": "3"}}},
            ],
            "resources": {"limits": {"cpu": "8000m", "memory": "32Gi", "nvidia.com/gpu": "1"}, "startupCpuBoost": True},
            "volumeMounts": [{"name": "models", "mountPath": "/mnt/models"}, {"name": "shm", "mountPath": "/dev/shm"}],
            "startupProbe": {
                "periodSeconds": 15,
                "timeoutSeconds": 5,
                "failureThreshold": 56,
                "httpGet": {"path": "/health", "port": 8080, "httpHeaders": [{"name": "X-Probe", "value": "1"}]},
            },
            "livenessProbe": {"periodSeconds": 30, "grpc": {"port": 9000, "service": "live"}},
        },
        {"name": "proxy", "image": "envoy", "ports": [{"containerPort": 8080}], "args": ["--max-model-len=1"]},
    ],
    "volumes": [
        {"name": "models", "gcs": {"bucket": "models", "readOnly": True, "mountOptions": ["implicit-dirs"]}},
        {"name": "shm", "emptyDir": {"medium": "MEMORY", "sizeLimit": "1Gi"}},
    ],
}


def body(change: Callable[[dict], None] = lambda _: None):
    data = json.loads(json.dumps(BODY))
    change(data)
    return json_format.ParseDict(data, run_v2.RevisionTemplate.pb(run_v2.RevisionTemplate()))


def changed(action) -> dict[str, tuple]:
    """Every leaf that differs between the template before and after, by its path."""
    before = flat(json_format.MessageToDict(body()))
    after = flat(json_format.MessageToDict(edited(body(), (action,))))
    return {p: (before.get(p), after.get(p)) for p in {*before, *after} if before.get(p) != after.get(p)}


def flat(data, path: str = "") -> dict[str, object]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    found = {p: v for k, child in items for p, v in flat(child, f"{path}/{k}").items()}
    return found if isinstance(data, dict | list) else {path: data}


def test_the_server_is_the_container_with_the_gpu() -> None:
    """Not the proxy in front of it, which has the port."""
    config = config_of(body())
    assert config.image == "vllm/vllm-openai:v0.32.0"
    assert config.args[2:4] == ("--limit-mm-per-prompt", '{"image":4}')
    assert (config.cpu, config.memory_mib, config.accelerator) == (8.0, 32768, "nvidia-l4")
    assert config.env[1] == EnvVar(name="KEY", secret="key")
    assert [v.bucket for v in config.volumes] == ["models", None]
    assert config.liveness_probe == Probe(
        kind="grpc", path="live", port=9000, period_s=30, timeout_s=1, failure_threshold=3
    )


def test_two_containers_without_a_mark_are_refused_by_name() -> None:
    """Nobody guesses which of two is the server."""

    def unmark(data: dict) -> None:
        data["containers"][0]["resources"]["limits"].pop("nvidia.com/gpu")
        data["containers"][1].pop("ports")

    with pytest.raises(InputRejected, match="vllm, proxy"):
        config_of(body(unmark))


FIRST = "/containers/0"
CASES = {
    "a flag in its other form": (
        SetFlag(name="max-model-len", value="8192"),
        {
            f"{FIRST}/args/4": ("--max-model-len=32768", "--max-model-len"),
            f"{FIRST}/args/5": ("--port=$(PORT_VAR)", "8192"),
            f"{FIRST}/args/6": (None, "--port=$(PORT_VAR)"),
        },
    ),
    "a switch at the end": (SetFlag(name="enforce_eager", value=""), {f"{FIRST}/args/6": (None, "--enforce-eager")}),
    "quoted JSON": (
        SetFlag(name="limit-mm-per-prompt", value='{"image":0}'),
        {f"{FIRST}/args/3": ('{"image":4}', '{"image":0}')},
    ),
    "a variable that is there": (SetEnv(name="HF_HUB_OFFLINE", value="0"), {f"{FIRST}/env/0/value": ("1", "0")}),
    "a new variable": (
        SetEnv(name="NEW", value="x"),
        {f"{FIRST}/env/2/name": (None, "NEW"), f"{FIRST}/env/2/value": (None, "x")},
    ),
    "memory": (SetResources(cpu=8, memory_mib=24576), {f"{FIRST}/resources/limits/memory": ("32Gi", "24Gi")}),
    "odd memory": (SetResources(cpu=8, memory_mib=20000), {f"{FIRST}/resources/limits/memory": ("32Gi", "20000Mi")}),
    "cpu": (SetResources(cpu=4, memory_mib=32768), {f"{FIRST}/resources/limits/cpu": ("8000m", "4")}),
    "scaling": (SetScaling(min_instances=1, max_instances=3), {"/scaling/maxInstanceCount": (1, 3)}),
    "concurrency": (SetConcurrency(concurrency=4), {"/maxInstanceRequestConcurrency": (16, 4)}),
    "options": (
        SetVolumeOptions(volume="models", options=("implicit-dirs", "uid=1000")),
        {"/volumes/0/gcs/mountOptions/1": (None, "uid=1000")},
    ),
    "a model": (SetModel(model="google/gemma"), {f"{FIRST}/args/1": ("/mnt/models/gemma", "google/gemma")}),
    "a startup probe": (
        SetStartupProbe(
            probe=Probe(kind="http", path="/health", port=8080, period_s=15, timeout_s=5, failure_threshold=90)
        ),
        {f"{FIRST}/startupProbe/failureThreshold": (56, 90)},
    ),
    "an accelerator": (
        SetAccelerator(accelerator="nvidia-rtx-pro-6000", cpu=20, memory_mib=81920),
        {
            "/nodeSelector/accelerator": ("nvidia-l4", "nvidia-rtx-pro-6000"),
            f"{FIRST}/resources/limits/cpu": ("8000m", "20"),
            f"{FIRST}/resources/limits/memory": ("32Gi", "80Gi"),
        },
    ),
    "nothing": (Restart(), {}),
    "what is so already": (SetConcurrency(concurrency=16), {}),
}


@pytest.mark.parametrize(("action", "want"), CASES.values(), ids=CASES)
def test_an_action_changes_exactly_what_it_names(action, want: dict) -> None:
    """Every leaf of the template is compared; headers, annotations, the other container and the rest stay."""
    assert changed(action) == want


def test_a_probe_of_another_kind_takes_the_place_of_the_old_one() -> None:
    """From HTTP to TCP nothing of HTTP is left; None takes the liveness probe away."""
    found = changed(SetStartupProbe(probe=Probe(port=8080)))
    assert found[f"{FIRST}/startupProbe/tcpSocket/port"] == (None, 8080)
    assert found[f"{FIRST}/startupProbe/httpGet/path"] == ("/health", None)
    assert all(p.startswith(f"{FIRST}/livenessProbe") for p in changed(SetLivenessProbe(probe=None)))


def test_taking_a_variable_away_leaves_the_secret_beside_it() -> None:
    """The version of a secret is not ours to lose."""
    after = edited(body(), (SetEnv(name="HF_HUB_OFFLINE", value=None),))
    assert [e.name for e in after.containers[0].env] == ["KEY"]
    assert after.containers[0].env[0].value_source.secret_key_ref.version == "3"


def command(*words: str, args: tuple[str, ...] = ()) -> Callable[[dict], None]:
    def change(data: dict) -> None:
        data["containers"][0] |= {"command": list(words), "args": list(args)}

    return change


REFUSED = {
    "a shell line": (
        command("/bin/bash", "-lc", "exec vllm serve m"),
        SetFlag(name="max-model-len", value="1"),
        "shell",
    ),
    "a shell line in args": (
        command("bash", args=("-c", "vllm serve m")),
        SetModel(model="m2"),
        "shell",
    ),
    "taking away from the command": (
        command("vllm", "serve", "m", "--enforce-eager"),
        SetFlag(name="enforce-eager", value=None),
        "command",
    ),
    "a model in the command": (command("vllm", "serve", "m"), SetModel(model="m2"), "model stands"),
    "a model alone in front": (command(args=("m", "--max-model-len", "1")), SetModel(model="m2"), "model stands"),
    "a model after a command that serves": (
        command("vllm", "serve", args=("m",)),
        SetModel(model="m2"),
        "model stands",
    ),
    "a quantity that is not said exactly": (lambda _: None, SetResources(cpu=4.12345678, memory_mib=32768), "cpu"),
    "no such volume": (lambda _: None, SetVolumeOptions(volume="other", options=("a",)), "other"),
    "a volume that is no bucket": (lambda _: None, SetVolumeOptions(volume="shm", options=("a",)), "shm"),
}


@pytest.mark.parametrize(("change", "action", "says"), REFUSED.values(), ids=REFUSED)
def test_what_would_have_no_effect_is_refused_by_name(change, action, says: str) -> None:
    """Better no change than one that looks made and does nothing."""
    with pytest.raises(InputRejected, match=says):
        edited(body(change), (action,))


def test_scaling_set_above_the_template_is_refused() -> None:
    """The service's own scaling decides; the template's would do nothing."""
    with pytest.raises(InputRejected, match="above its template"):
        edited(body(), (SetScaling(min_instances=0, max_instances=2),), scaled_above=True)


def test_a_secret_is_replaced_by_a_value_whole() -> None:
    """One variable holds one of the two."""
    after = edited(body(), (SetEnv(name="KEY", value="x"),)).containers[0].env[1]
    assert (after.value, after.HasField("value_source")) == ("x", False)
