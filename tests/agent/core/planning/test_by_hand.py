"""The commands for a person: quoted for a shell, complete, and for a lifecycle alone."""

import shlex

import pytest

from agent.core.plan.action import Lifecycle, LifecycleOperation, Restart, SetScaling
from agent.core.planning.by_hand import lifecycle_commands
from agent.core.service.services import Service
from agent.core.service.serving import EnvVar, Probe, ServingConfig, Volume

CONFIG = ServingConfig(
    image="vllm/vllm-openai:v0.32.0",
    args=("--model", "/mnt/models/gemma", "--limit-mm-per-prompt", '{"image": 1, "video": 0}'),
    env=(EnvVar(name="HF_HUB_OFFLINE", value="1"), EnvVar(name="LIST", value="a,b")),
    cpu=8,
    memory_mib=32_768,
    accelerator="nvidia-l4",
    min_instances=0,
    max_instances=2,
    concurrency=4,
    startup_probe=Probe(kind="http", path="/health", port=8000, period_s=15, timeout_s=5, failure_threshold=56),
    volumes=(
        Volume(name="models-1", mount_path="/mnt/models", bucket="b", options=("only-dir=gemma", "implicit-dirs")),
    ),
)


def service(platform, **more):
    return Service(name="gemma", platform=platform, model="m", accelerator="nvidia-l4", owner="console", **more)


def commands(platform, operation, **more):
    config = CONFIG if operation == "create" else None
    action = Lifecycle(operation=LifecycleOperation(operation), config=config, max_instances=2)
    return lifecycle_commands(service(platform, **more), (action,))


RUN = {"project": "p", "location": "us-east4"}
KUBE = {"namespace": "llm", "workload": "statefulset/gemma", "context": "prod"}


@pytest.mark.parametrize(
    ("platform", "operation", "more", "command"),
    [
        ("cloud_run", "stop", RUN, "gcloud run services update gemma --project p --region us-east4 --scaling 0"),
        ("cloud_run", "start", RUN, "gcloud run services update gemma --project p --region us-east4 --scaling auto"),
        ("cloud_run", "delete", RUN, "gcloud run services delete gemma --project p --region us-east4"),
        ("kubernetes", "stop", KUBE, "kubectl scale statefulset/gemma --context prod --namespace llm --replicas 0"),
        ("kubernetes", "start", {}, "kubectl scale deployment/gemma --namespace default --replicas 2"),
        ("kubernetes", "delete", KUBE, "kubectl delete statefulset/gemma --context prod --namespace llm"),
        ("host", "stop", {}, "sre-agent watch --stop gemma"),
        ("tpu_vm", "stop", RUN, "gcloud compute tpus tpu-vm stop gemma --project p --zone us-east4"),
        (
            "tpu_vm",
            "delete",
            RUN | {"queued_resource": "gemma-qr"},
            "gcloud compute tpus queued-resources delete gemma-qr --project p --zone us-east4",
        ),
        ("ec2", "delete", {}, 'aws ec2 terminate-instances --instance-ids "$INSTANCE_ID"'),
        ("container_apps", "delete", {}, 'az containerapp delete --name gemma --resource-group "$RESOURCE_GROUP"'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_platform_has_its_own_words(platform, operation, more, command):
    assert commands(platform, operation, **more) == (command,)


def test_a_creation_says_all_that_the_configuration_says():
    """Lists whose words hold commas are divided by another character, as gcloud takes it."""
    (command,) = commands("cloud_run", "create", **RUN)
    words = shlex.split(command)
    said = {words[n]: words[n + 1] for n in range(4, len(words) - 1) if words[n].startswith("--")}
    assert words[:4] == ["gcloud", "run", "deploy", "gemma"]
    assert said["--args"] == '^|^--model|/mnt/models/gemma|--limit-mm-per-prompt|{"image": 1, "video": 0}'
    assert said["--set-env-vars"] == "^|^HF_HUB_OFFLINE=1|LIST=a,b"
    assert (said["--gpu"], said["--gpu-type"], said["--cpu"], said["--memory"]) == ("1", "nvidia-l4", "8", "32768Mi")
    assert said["--startup-probe"] == (
        "httpGet.port=8000,httpGet.path=/health,initialDelaySeconds=0,periodSeconds=15,timeoutSeconds=5,failureThreshold=56"
    )
    assert said["--add-volume"] == (
        "name=models-1,type=cloud-storage,bucket=b,readonly=true,mount-options=only-dir=gemma;implicit-dirs"
    )
    assert said["--add-volume-mount"] == "volume=models-1,mount-path=/mnt/models"
    assert (said["--min-instances"], said["--max-instances"], said["--port"]) == ("0", "2", "8000")


def test_nothing_else_has_commands():
    """A change of settings is described by its difference; scaling to zero is a stop."""
    run = service("cloud_run", **RUN)
    assert lifecycle_commands(run, (Restart(),)) == ()
    assert lifecycle_commands(run, (SetScaling(min_instances=0, max_instances=1),)) == ()
    stop = lifecycle_commands(run, (SetScaling(min_instances=0, max_instances=0),))
    assert stop == commands("cloud_run", "stop", **RUN)
