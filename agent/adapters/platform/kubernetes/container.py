"""The container that serves a model, and its quantities and probes as numbers."""

from typing import Any, Final

from agent.adapters.platform.kubernetes.workload import Workload
from agent.adapters.platform.quantities import quantity
from agent.core.service.serving import Probe
from agent.errors import InputRejected

Json = dict[str, Any]

GPUS: Final = ("nvidia.com/gpu", "google.com/tpu", "amd.com/gpu")
GPU_LABEL: Final = "cloud.google.com/gke-accelerator"
TPU_LABEL: Final = "cloud.google.com/gke-tpu-accelerator"

# What GKE calls them where our catalogue has another name: https://cloud.google.com/kubernetes-engine/docs/concepts/gpus
# and .../concepts/tpus, read 2026-11-22.
_OUR_NAMES: Final = {
    "nvidia-tesla-a100": "nvidia-a100-40gb",
    "nvidia-tesla-t4": "nvidia-t4",
    "tpu-v5-lite-podslice": "tpu-v5e",
    "tpu-v5-lite-device": "tpu-v5e",
    "tpu-v5p-slice": "tpu-v5p",
    "tpu-v6e-slice": "tpu-v6e",
}


def server_of(template: Json, workload: Workload) -> Json:
    """Return the container that serves: the named one, the one with an accelerator, with a port, or the only one.

    Raises:
        InputRejected: There is none of that name, or none of several is plainly it.
    """
    containers: list[Json] = template["spec"].get("containers") or []
    names = ", ".join(c["name"] for c in containers)
    if workload.container is not None:
        named = next((c for c in containers if c["name"] == workload.container), None)
        if named is None:
            raise _unclear(workload, f"it has no container {workload.container!r}; its containers are {names}")
        return named
    for marked in (
        [c for c in containers if accelerators_of(c)],
        [c for c in containers if c.get("ports")],
        containers,
    ):
        if len(marked) == 1:
            return marked[0]
        if len(marked) > 1 and marked is not containers:
            break
    raise _unclear(workload, f"of its containers ({names}) none is plainly the server")


def _unclear(workload: Workload, why: str) -> InputRejected:
    return InputRejected(
        f"{workload.says} was not described", why=why, hint="name the server's container in services.toml: container"
    )


def accelerators_of(container: Json) -> int:
    """Return how many accelerators a container has; 0 for none."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return next((int(quantity(limits[gpu])) for gpu in GPUS if gpu in limits), 0)


def accelerator_of(template: Json, container: Json, declared: str | None) -> str | None:
    """Return the accelerator by our catalogue's name: as the nodes' labels say, otherwise as services.toml does."""
    if not accelerators_of(container):
        return None
    label = _wanted_label(template["spec"], GPU_LABEL) or _wanted_label(template["spec"], TPU_LABEL)
    return _OUR_NAMES.get(label, label) if label else declared


def accelerator_label(template: Json) -> str | None:
    """Return the label by which the template chooses its accelerator, where a node selector does."""
    selector = template["spec"].get("nodeSelector") or {}
    return next((label for label in (GPU_LABEL, TPU_LABEL) if label in selector), None)


def is_tpu(accelerator: str) -> bool:
    """Whether an accelerator of the catalogue is a TPU."""
    return accelerator.startswith("tpu")


def label_value(accelerator: str) -> str:
    """Return GKE's word for an accelerator of the catalogue."""
    return next((theirs for theirs, ours in _OUR_NAMES.items() if ours == accelerator), accelerator)


def _wanted_label(spec: Json, label: str) -> str | None:
    selected = (spec.get("nodeSelector") or {}).get(label)
    if selected:
        return str(selected)
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for rule in term.get("matchExpressions") or []:
            if rule.get("key") == label and rule.get("operator") == "In" and len(rule.get("values") or []) == 1:
                return str(rule["values"][0])
    return None


def probe_of(probe: Json | None, container: Json) -> Probe | None:
    """Return a probe; what it leaves out is the API server's default: period 10 s, timeout 1 s, 3 failures."""
    if not probe:
        return None
    kind, path, port = "exec", None, None
    if "httpGet" in probe:
        kind, path, port = "http", probe["httpGet"].get("path"), _port(probe["httpGet"].get("port"), container)
    elif "tcpSocket" in probe:
        kind, port = "tcp", _port(probe["tcpSocket"].get("port"), container)
    elif "grpc" in probe:
        kind, path, port = "grpc", probe["grpc"].get("service"), probe["grpc"].get("port")
    return Probe(
        kind=kind,
        path=path,
        port=port,
        initial_delay_s=probe.get("initialDelaySeconds") or 0,
        period_s=probe.get("periodSeconds") or 10,
        timeout_s=probe.get("timeoutSeconds") or 1,
        failure_threshold=probe.get("failureThreshold") or 3,
    )


def _port(port: Any, container: Json) -> int | None:
    """A port by its number, also where the probe gives the name of one of the container's ports."""
    if isinstance(port, int):
        return port
    named = (p["containerPort"] for p in container.get("ports") or [] if p.get("name") == port)
    return next(named, None)


def serving_port(container: Json) -> int:
    """Return the port that answers requests: of the probes, the container's first, or vLLM's own default."""
    for name in ("readinessProbe", "startupProbe", "livenessProbe"):
        probe = probe_of(container.get(name), container)
        if probe is not None and probe.kind == "http" and probe.port:
            return probe.port
    ports = container.get("ports") or []
    return int(ports[0]["containerPort"]) if ports else 8000


def write_probe(old: Json | None, probe: Probe, container: Json) -> Json:
    """Return a probe as Kubernetes writes it; headers, scheme and the name of a port stay where they can."""
    new: Json = {k: v for k, v in (old or {}).items() if k not in {"httpGet", "tcpSocket", "grpc", "exec"}}
    new |= {
        "initialDelaySeconds": probe.initial_delay_s,
        "periodSeconds": probe.period_s,
        "timeoutSeconds": probe.timeout_s,
        "failureThreshold": probe.failure_threshold,
    }
    if not probe.initial_delay_s:
        del new["initialDelaySeconds"]  # the API server leaves a zero out
    handler = {"http": "httpGet", "grpc": "grpc", "exec": "exec"}.get(probe.kind, "tcpSocket")
    before: Json = dict((old or {}).get(handler) or {})
    if handler == "exec":
        return new | ({"exec": before} if before else {})
    if _port(before.get("port"), container) != probe.port:
        before["port"] = probe.port
    if handler == "httpGet":
        before["path"] = probe.path or "/"
    if handler == "grpc" and probe.path is not None:
        before["service"] = probe.path
    return new | {handler: before}
