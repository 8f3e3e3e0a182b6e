"""A workload that the agent creates: flags that are proved to fit, and a probe that allows the computed start."""

from agent.adapters.platform.kubernetes.manifest import manifest
from agent.adapters.platform.kubernetes.workload import Workload
from agent.app.catalogues import read_capacity
from agent.core.planning.creation import creation
from agent.core.planning.longer_start import LONGEST_START_S
from agent.core.service.container_args import flag_map
from agent.core.service.services import parse_services

ENTRY = {
    "name": "gemma",
    "platform": "kubernetes",
    "namespace": "llm",
    "model": "google/gemma-4-26B-A4B-it-qat-w4a16-ct",
    "accelerator": "nvidia-l4",
    "vllm": "0.22.1",
    "owner": "console",
    "needs": {"context": 16384, "users": 4},
}


def test_a_created_deployment_runs_what_was_proved_and_waits_as_long_as_the_start_takes() -> None:
    """One template selects its own pods, asks for the GPU, and bears the stamp by which an undo finds it."""
    watched = parse_services({"service": [ENTRY]})
    (service,), fits = watched.services, read_capacity(watched)
    config = creation(service, fits).config
    assert config is not None
    body = manifest(Workload.of(service), config, {"sre-agent-effect": "k1"})
    spec = body["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert fits.assess("gemma", config).fits is True
    assert int(flag_map(tuple(container["args"]))["max-model-len"]) >= 16384
    probe = container["startupProbe"]
    start = fits.start_up("gemma", config, seen_s=None)
    longest = LONGEST_START_S[True]  # allowed where nobody knows how fast the checkpoint is read
    assert probe["periodSeconds"] * probe["failureThreshold"] >= (start.seconds if start is not None else longest)
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    for annotated in (body["metadata"], spec["template"]["metadata"]):
        assert annotated["annotations"] == {"sre-agent-effect": "k1"}
    assert container["ports"] == [{"containerPort": probe["httpGet"]["port"]}]
