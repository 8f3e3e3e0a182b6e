"""What a person types to create, start, stop or delete a service where the agent may not or cannot.

The commands keep to the forms of gcloud, kubectl, az and aws as their references have them in 2026; none was run by us.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from agent.core.plan.action import Action, Lifecycle, LifecycleOperation
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.service.services import Service, workload_ref
from agent.core.service.serving import Probe, ServingConfig, Volume

Operation = LifecycleOperation
_VARIABLE = re.compile(r"\$[A-Z_]+")


def lifecycle_commands(service: Service, actions: tuple[Action, ...]) -> tuple[str, ...]:
    """Return the commands of a platform for a lifecycle, in order; none for any other change, or where none is known.

    Args:
        service: As services.toml names it; names that it does not hold stand as shell variables.
        actions: What was asked for.
    """
    operation = lifecycle_of(actions)
    make = _PLATFORMS.get(service.platform)
    if operation is None or make is None:
        return ()
    asked = next((action for action in actions if isinstance(action, Lifecycle)), None)
    return tuple(make(service, operation, asked or Lifecycle(operation=Operation.STOP)))


def _cloud_run(service: Service, operation: Operation, asked: Lifecycle) -> Iterator[str]:
    place = ("--project", service.project or "$PROJECT", "--region", service.location or "$REGION")
    match operation:
        case Operation.STOP:
            yield _words("gcloud", "run", "services", "update", service.name, *place, "--scaling", "0")
        case Operation.START:
            yield _words("gcloud", "run", "services", "update", service.name, *place, "--scaling", "auto")
        case Operation.DELETE:
            yield _words("gcloud", "run", "services", "delete", service.name, *place)
        case Operation.CREATE if asked.config is not None:
            yield _words("gcloud", "run", "deploy", service.name, *place, *_deployed(asked.config))


def _deployed(config: ServingConfig) -> Iterator[str]:
    """The options of ``gcloud run deploy`` for a configuration; a GPU wants CPU that is always allocated."""
    yield from ("--image", config.image, "--no-allow-unauthenticated")
    for option, words in (("--command", config.command), ("--args", config.args)):
        if words:
            yield from (option, _listed(words))
    if config.env:
        yield from ("--set-env-vars", _listed([f"{e.name}={e.value or ''}" for e in config.env]))
    given = (
        ("--cpu", f"{config.cpu:g}" if config.cpu else None),
        ("--memory", f"{config.memory_mib}Mi" if config.memory_mib else None),
        ("--min-instances", config.min_instances),
        ("--max-instances", config.max_instances),
        ("--concurrency", config.concurrency),
        ("--port", config.startup_probe.port if config.startup_probe is not None else None),
    )
    for option, value in given:
        if value is not None:
            yield from (option, str(value))
    if config.accelerator is not None:
        yield from ("--gpu", str(config.accelerator_count), "--gpu-type", config.accelerator)
        yield from ("--no-gpu-zonal-redundancy", "--no-cpu-throttling")
    for option, probe in (("--startup-probe", config.startup_probe), ("--liveness-probe", config.liveness_probe)):
        if probe is not None:
            yield from (option, _probed(probe))
    for volume in config.volumes:
        yield from _mounted(volume)


def _probed(probe: Probe) -> str:
    kind = {"http": "httpGet", "grpc": "grpc"}.get(probe.kind, "tcpSocket")
    place = [f"{kind}.port={probe.port}"] + ([f"{kind}.path={probe.path}"] if probe.kind == "http" else [])
    waits = (
        ("initialDelaySeconds", probe.initial_delay_s),
        ("periodSeconds", probe.period_s),
        ("timeoutSeconds", probe.timeout_s),
        ("failureThreshold", probe.failure_threshold),
    )
    return ",".join([*place, *(f"{name}={value}" for name, value in waits)])


def _mounted(volume: Volume) -> Iterator[str]:
    options = f",mount-options={';'.join(volume.options)}" if volume.options else ""
    read_only = ",readonly=true" if volume.read_only else ""
    yield from ("--add-volume", f"name={volume.name},type=cloud-storage,bucket={volume.bucket}{read_only}{options}")
    yield from ("--add-volume-mount", f"volume={volume.name},mount-path={volume.mount_path}")


def _listed(words: Sequence[str]) -> str:
    """A list as gcloud takes it, divided by a character that is in none of the words."""
    if not any("," in word for word in words) and not words[0].startswith("^"):
        return ",".join(words)
    divider = next(mark for mark in "|;@#~%" if not any(mark in word for word in words))
    return f"^{divider}^{divider.join(words)}"


def _kubernetes(service: Service, operation: Operation, asked: Lifecycle) -> Iterator[str]:
    context, at = ("--context", service.context) if service.context else (), workload_ref(service)
    place, workload = (*context, "--namespace", at.namespace), f"{at.kind}/{at.name}"
    match operation:
        case Operation.STOP:
            yield _words("kubectl", "scale", workload, *place, "--replicas", "0")
        case Operation.START:
            yield _words("kubectl", "scale", workload, *place, "--replicas", str(asked.max_instances))
        case Operation.DELETE:
            yield _words("kubectl", "delete", workload, *place)


def _host(service: Service, operation: Operation, asked: Lifecycle) -> Iterator[str]:
    if operation is Operation.STOP:
        yield _words("sre-agent", "watch", "--stop", service.name)
    if operation is Operation.CREATE and asked.config is not None:
        yield _words("sre-agent", "watch", "--name", service.name, "--", "vllm", "serve", *asked.config.args)


def _tpu_vm(service: Service, operation: Operation, asked: Lifecycle) -> Iterator[str]:  # noqa: ARG001 - one form
    place = ("--project", service.project or "$PROJECT", "--zone", service.location or "$ZONE")
    if operation is Operation.DELETE:  # without --force: Cloud TPU refuses while its node is there
        queued = service.queued_resource or "$QUEUED_RESOURCE"
        yield _words("gcloud", "compute", "tpus", "queued-resources", "delete", queued, *place)
    elif operation is not Operation.CREATE:
        yield _words("gcloud", "compute", "tpus", "tpu-vm", operation.value, service.name, *place)


def _ec2(service: Service, operation: Operation, asked: Lifecycle) -> Iterator[str]:  # noqa: ARG001 - one form for all
    verb = {Operation.START: "start", Operation.STOP: "stop", Operation.DELETE: "terminate"}.get(operation)
    if verb is not None:
        instance = service.instance if (service.instance or "").startswith("i-") else "$INSTANCE_ID"
        region = ("--region", service.location) if service.location else ()
        yield _words("aws", "ec2", f"{verb}-instances", *region, "--instance-ids", instance or "$INSTANCE_ID")


def _container_apps(service: Service, operation: Operation, asked: Lifecycle) -> Iterator[str]:  # noqa: ARG001 - one form
    place = ("--name", service.name, "--resource-group", service.resource_group or "$RESOURCE_GROUP")
    verb = {Operation.START: "activate", Operation.STOP: "deactivate"}.get(operation)
    if verb is not None:
        yield _words("az", "containerapp", "revision", verb, *place, "--revision", "$REVISION")
    if operation is Operation.DELETE:
        yield _words("az", "containerapp", "delete", *place)


_PLATFORMS: dict[str, Callable[[Service, Operation, Lifecycle], Iterator[str]]] = {
    "cloud_run": _cloud_run,
    "kubernetes": _kubernetes,
    "host": _host,
    "tpu_vm": _tpu_vm,
    "ec2": _ec2,
    "container_apps": _container_apps,
}


def _words(*words: str) -> str:
    """Quote each word for a shell; a variable in capitals stays one, for the person to set."""
    return " ".join(f'"{word}"' if _VARIABLE.fullmatch(word) else shlex.quote(word) for word in words)
