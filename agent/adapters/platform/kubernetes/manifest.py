"""A workload that is not there yet, as Kubernetes writes it, from the typed configuration that it is to have."""

from typing import Any

from agent.adapters.platform.kubernetes.container import GPU_LABEL, GPUS, TPU_LABEL, is_tpu, label_value, write_probe
from agent.adapters.platform.kubernetes.edit import written_strategy
from agent.adapters.platform.kubernetes.workload import Workload
from agent.adapters.platform.quantities import cores, mebibytes
from agent.core.service.serving import EnvVar, Probe, ServingConfig
from agent.errors import InputRejected

Json = dict[str, Any]

APP = "app.kubernetes.io/name"


def manifest(workload: Workload, config: ServingConfig, stamp: dict[str, str]) -> Json:
    """Return the object that runs a configuration; its labels select its pods.

    Args:
        workload: Its name and kind.
        config: What to run.
        stamp: Annotations of the object and of its pods.

    Raises:
        InputRejected: The configuration names what only a person can say.
    """
    if config.volumes:
        raise _refused(workload, f"volume {config.volumes[0].name!r}: which claim or bucket it is, nobody said")
    if config.min_instances != config.max_instances:
        why = f"a {workload.kind} has one number of replicas, not {config.min_instances} to {config.max_instances}"
        raise _refused(workload, why)
    labels = {APP: workload.name}
    pod: Json = {"containers": [_container(workload, config)]}
    if config.termination_grace_s is not None:
        pod["terminationGracePeriodSeconds"] = config.termination_grace_s
    if config.accelerator is not None and workload.accelerator != config.accelerator:
        label = TPU_LABEL if is_tpu(config.accelerator) else GPU_LABEL
        pod["nodeSelector"] = {label: label_value(config.accelerator)}
    spec: Json = {
        "replicas": config.max_instances,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": stamp}, "spec": pod},
    }
    if workload.kind == "statefulset":
        spec["serviceName"] = workload.name
    elif config.strategy is not None:
        spec["strategy"] = written_strategy(config.strategy)
    if config.progress_deadline_s is not None:
        spec["progressDeadlineSeconds"] = config.progress_deadline_s
    return {"metadata": {"name": workload.name, "labels": labels, "annotations": stamp}, "spec": spec}


def _container(workload: Workload, config: ServingConfig) -> Json:
    limits: Json = {}
    if config.cpu is not None:
        limits["cpu"] = cores(config.cpu)
    if config.memory_mib is not None:
        limits["memory"] = mebibytes(config.memory_mib)
    if config.accelerator not in {None, "cpu"}:
        limits[GPUS[1] if is_tpu(str(config.accelerator)) else GPUS[0]] = str(config.accelerator_count)
    made: Json = {
        "name": workload.container or "vllm",
        "image": config.image,
        "env": [_env(workload, e) for e in config.env],
        "resources": {"limits": limits},
    }
    made |= {"command": list(config.command)} if config.command else {}
    made |= {"args": list(config.args)} if config.args else {}
    probe: Probe | None
    for field, probe in (("startupProbe", config.startup_probe), ("livenessProbe", config.liveness_probe)):
        if probe is not None:
            made[field] = write_probe(None, probe, made)
    if config.startup_probe is not None and config.startup_probe.kind == "http":
        ready = config.startup_probe.with_(initial_delay_s=0, period_s=10, failure_threshold=3)
        made["readinessProbe"] = write_probe(None, ready, made)
        made["ports"] = [{"containerPort": config.startup_probe.port}]
    return made


def _env(workload: Workload, variable: EnvVar) -> Json:
    if variable.secret is None:
        return {"name": variable.name, "value": variable.value or ""}
    kind, _, rest = variable.secret.partition("/")
    name, _, key = rest.partition(":")
    refs = {"secret": "secretKeyRef", "configmap": "configMapKeyRef"}
    if kind not in refs or not name or not key:
        why = f"{variable.name!r} comes from {variable.secret!r}: want secret/NAME:KEY or configmap/NAME:KEY"
        raise _refused(workload, why)
    return {"name": variable.name, "valueFrom": {refs[kind]: {"name": name, "key": key}}}


def _refused(workload: Workload, why: str) -> InputRejected:
    return InputRejected(f"{workload.says} was not created", why=why, hint="create it by hand from a manifest")
