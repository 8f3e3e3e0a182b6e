"""A workload changed by typed actions: only what they name, refused by name where it cannot be done."""

import copy

import pytest

from agent.adapters.platform.kubernetes.describe import config_of
from agent.adapters.platform.kubernetes.edit import check_admitted, edited
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
    SetStrategy,
    SetTerminationGrace,
    SetVolumeOptions,
)
from agent.core.service.serving import EnvVar, Probe, Strategy
from agent.errors import InputRejected
from tests.agent.adapters.platform.kubernetes.seen import ARGS, seen

SHORTER = SetFlag(name="max-model-len", value="4096")
RECREATE = SetStrategy(strategy=Strategy(kind="Recreate"))
BUCKET = {
    "name": "models",
    "csi": {
        "driver": "gcsfuse.csi.storage.gke.io",
        "volumeAttributes": {"bucketName": "b", "mountOptions": "implicit-dirs"},
    },
}


def test_only_what_an_action_names_is_changed() -> None:
    """Fields that we do not know, references and the order of things stay."""
    env = [
        {"name": "A", "value": "1"},
        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    container = {"env": env, "newerThanUs": {"x": 1}, "livenessProbe": {"httpGet": {"path": "/health", "port": "http"}}}
    was = seen(container=container, pod={"volumes": [copy.deepcopy(BUCKET)]})
    was.spec["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "models", "mountPath": "/m"}]
    before = copy.deepcopy(was.spec)
    spec = edited(
        was,
        (
            SHORTER,
            SetEnv(name="A", value="2"),
            SetEnv(name="B", value="3"),
            SetResources(cpu=0.5, memory_mib=1536),
            SetVolumeOptions(volume="models", options=("implicit-dirs", "uid=1")),
            SetLivenessProbe(probe=Probe(kind="http", path="/live", port=8000, period_s=20, timeout_s=5)),
            SetProgressDeadline(seconds=1200),
            SetTerminationGrace(seconds=120),
            RECREATE,
        ),
    )
    assert was.spec == before
    server = spec["template"]["spec"]["containers"][0]
    assert server["args"] == ["serve", "google/gemma-3-27b-it", "--max-model-len", "4096"]
    assert server["env"] == [{"name": "A", "value": "2"}, *env[1:], {"name": "B", "value": "3"}]
    assert server["newerThanUs"] == {"x": 1}
    assert server["resources"]["limits"] == {"nvidia.com/gpu": "1", "cpu": "500m", "memory": "1536Mi"}
    assert server["livenessProbe"]["httpGet"] == {"path": "/live", "port": "http"}
    assert spec["template"]["spec"]["volumes"][0]["csi"]["volumeAttributes"]["mountOptions"] == "implicit-dirs,uid=1"
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["progressDeadlineSeconds"] == 1200
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 120
    assert set(spec) - set(before) == {"strategy", "progressDeadlineSeconds"}


def test_references_are_named_and_never_followed() -> None:
    """What valueFrom points at stands in the configuration; its value does not."""
    env = [
        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "cfg", "key": "k"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "M", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
    ]
    assert config_of(seen(container={"env": env})).env == (
        EnvVar(name="T", secret="secret/hf:token"),
        EnvVar(name="C", secret="configmap/cfg:k"),
        EnvVar(name="IP", secret="field/status.podIP"),
        EnvVar(name="M", secret="field/limits.memory"),
    )


def gpu(name: str) -> dict[str, object]:
    return {"name": name, "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}


REFUSED = {
    "a shell line": ({"args": ["sh", "-c", "vllm serve m"]}, SHORTER, "a shell line starts the server"),
    "a script": ({"args": [], "container": {"command": ["/scripts/start.sh"]}}, SHORTER, "'/scripts/start.sh' starts"),
    "flags in a ConfigMap": ({"args": ["serve", "m", "$(VLLM_ARGS)"]}, SHORTER, r"fills in '\$\(VLLM_ARGS\)'"),
    "valueFrom": (
        {"container": {"env": [{"name": "T", "valueFrom": {"configMapKeyRef": {"name": "cfg", "key": "k"}}}]}},
        SetEnv(name="T", value="x"),
        "'T' is filled in from configmap/cfg:k: change it there",
    ),
    "an autoscaler": (
        {"scaled_by": "HorizontalPodAutoscaler 'gemma'"},
        SetScaling(min_instances=2, max_instances=2),
        "belongs to HorizontalPodAutoscaler 'gemma'",
    ),
    "a range of replicas": ({}, SetScaling(min_instances=1, max_instances=2), "one number of replicas"),
    "concurrency": ({}, SetConcurrency(concurrency=4), "--max-num-seqs"),
    "a bucket that is not mounted": ({}, SetVolumeOptions(volume="m", options=()), "no bucket under the name 'm'"),
    "a paused Deployment": ({"paused": True}, SHORTER, "is paused"),
    "OnDelete": ({"kind": "statefulset", "updateStrategy": {"type": "OnDelete"}}, SHORTER, "OnDelete"),
    "a partition": (
        {"kind": "statefulset", "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
        SHORTER,
        "below partition 1",
    ),
    "the strategy of a StatefulSet": ({"kind": "statefulset"}, RECREATE, "ends each pod before"),
    "the deadline of a StatefulSet": (
        {"kind": "statefulset"},
        SetProgressDeadline(seconds=900),
        "no progress deadline",
    ),
    "a TPU for a GPU": (
        {"pod": {"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}},
        SetAccelerator(accelerator="tpu-v6e", cpu=8, memory_mib=32768),
        "another template",
    ),
    "several containers with a GPU": (
        {"pod": {"containers": [gpu("a"), gpu("b")]}},
        SHORTER,
        r"\(a, b\) none is plainly",
    ),
    "no such container": ({"service": {"container": "tgi"}}, SHORTER, "no container 'tgi'; its containers are vllm"),
    "a model in the command": (
        {"container": {"command": ["vllm", "serve", "m"]}, "args": ["--port", "8000"]},
        SetModel(model="n"),
        "where it is not replaced",
    ),
    "an accelerator that no label chooses": (
        {},
        SetAccelerator(accelerator="nvidia-a100-80gb", cpu=8, memory_mib=32768),
        "cannot say it: accelerator",
    ),
}


@pytest.mark.parametrize(("how", "action", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_refused_by_name(how: dict, action: object, why: str) -> None:
    """Each with the reason, and nothing was sent to anybody."""
    with pytest.raises(InputRejected, match=why):
        edited(seen(**how), (action,))


def test_what_the_api_server_would_store_must_be_what_was_approved() -> None:
    """It drops unknown fields and admission webhooks rewrite known ones; what it merely spells differently is equal."""
    was = seen(container={"env": [{"name": "A", "value": "1"}]})
    wanted = edited(was, (SHORTER, SetResources(cpu=2, memory_mib=2048)))
    made = copy.deepcopy(wanted)
    server = made["template"]["spec"]["containers"][0]
    server["resources"]["limits"]["cpu"] = "2000m"
    server["startupProbe"] |= {"timeoutSeconds": 1, "successThreshold": 1}
    check_admitted(was, wanted, made)
    server["args"][-1] = "2048"
    server["env"].append({"name": "B", "value": "2"})
    with pytest.raises(
        InputRejected, match="store flag --max-model-len 2048 in place of 4096; env B 2 in place of nothing"
    ):
        check_admitted(was, wanted, made)


def test_a_named_container_is_the_server_among_several() -> None:
    """services.toml decides where the object does not tell."""
    spec = edited(
        seen(pod={"containers": [gpu("a") | {"args": ARGS}, gpu("b")]}, service={"container": "a"}), (SHORTER,)
    )
    assert "4096" in spec["template"]["spec"]["containers"][0]["args"]
    assert "args" not in spec["template"]["spec"]["containers"][1]


def test_a_sidecar_without_a_gpu_is_not_the_server() -> None:
    proxy = {"name": "proxy", "image": "i", "ports": [{"containerPort": 80}]}
    assert config_of(seen(pod={"containers": [proxy, gpu("vllm") | {"args": ARGS}]})).args == tuple(ARGS)


LABELS = {
    "GKE's GPU": ({"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}}, "nvidia-h100-80gb"),
    "GKE's older name": ({"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}}, "nvidia-t4"),
    "GKE's TPU": ({"nodeSelector": {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"}}, "tpu-v6e"),
    "an affinity": (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "cloud.google.com/gke-accelerator", "operator": "In", "values": ["nvidia-l4"]}]}
        ]}}}},
        "nvidia-l4",
    ),
    "services.toml": ({}, "nvidia-l4"),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "name"), LABELS.values(), ids=LABELS)
def test_the_accelerator_is_told_by_labels_or_by_services_toml(pod: dict, name: str) -> None:
    assert config_of(seen(pod=pod)).accelerator == name


def test_an_accelerator_changes_by_its_label() -> None:
    """The limits follow."""
    was = seen(pod={"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}})
    spec = edited(was, (SetAccelerator(accelerator="nvidia-a100-40gb", cpu=12, memory_mib=87040),))
    assert spec["template"]["spec"]["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}
    assert spec["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] == "85Gi"


def test_a_probe_keeps_what_its_action_does_not_say() -> None:
    """Headers, scheme and the name of the port."""
    old = {"httpGet": {"path": "/h", "port": "http", "scheme": "HTTPS", "httpHeaders": [1]}, "successThreshold": 1}
    probe = Probe(kind="http", path="/health", port=8000, period_s=15, timeout_s=5, failure_threshold=80)
    spec = edited(seen(container={"startupProbe": old}), (SetStartupProbe(probe=probe),))
    assert spec["template"]["spec"]["containers"][0]["startupProbe"] == {
        "successThreshold": 1,
        "periodSeconds": 15,
        "timeoutSeconds": 5,
        "failureThreshold": 80,
        "httpGet": {"path": "/health", "port": "http", "scheme": "HTTPS", "httpHeaders": [1]},
    }
    assert probe.budget_s == 1200
