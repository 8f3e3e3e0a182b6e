"""Cloud Run services as a whole: created from a configuration, stopped and started by a manual count, deleted."""

from typing import Any

from agent.adapters.platform.cloud_run.describe import GPU, config_of, short
from agent.adapters.platform.cloud_run.template import (
    INCIDENT_LABEL,
    REVISION_NOTE,
    SCALING_NOTE,
    manual_of,
)
from agent.adapters.platform.server_flags import server_port
from agent.adapters.platform.work import Work
from agent.core.service.serving import EFFECT_LABEL, Probe, ServingConfig
from agent.errors import InputRejected
from agent.ports.platform import Operation, Order, Restore


def new_template(config: ServingConfig) -> Any:
    """Return a ``RevisionTemplate`` message that runs a configuration, with the platform's defaults for the rest.

    Raises:
        InputRejected: A template cannot say all of it.
    """
    from google.cloud import run_v2

    template = run_v2.RevisionTemplate.pb(run_v2.RevisionTemplate())
    container = template.containers.add(image=config.image)
    container.command[:] = config.command
    container.args[:] = config.args
    for entry in config.env:
        container.env.add(name=entry.name, value=entry.value or "")
    _write_resources(template, container, config)
    container.ports.add(container_port=server_port(config))
    for name in ("startup_probe", "liveness_probe"):
        probe: Probe | None = getattr(config, name)
        if probe is not None:
            write_probe(getattr(container, name), probe)
    for volume in config.volumes:
        container.volume_mounts.add(name=volume.name, mount_path=volume.mount_path)
        made = template.volumes.add(name=volume.name)
        made.gcs.bucket, made.gcs.read_only = volume.bucket or "", volume.read_only
        made.gcs.mount_options[:] = volume.options
    if config_of(template) != config:
        raise InputRejected(
            "the service was not created",
            why=f"a Cloud Run template cannot say all of it: {config_of(template).differing(config)}",
            hint="leave that out, or create the service by hand",
        )
    return template


def _write_resources(template: Any, container: Any, config: ServingConfig) -> None:
    limits = container.resources.limits
    if config.cpu is not None:
        limits["cpu"] = f"{config.cpu:g}"
    if config.memory_mib is not None:
        limits["memory"] = f"{config.memory_mib}Mi"
    if config.accelerator is not None:
        limits[GPU] = str(config.accelerator_count)
        template.node_selector.accelerator = config.accelerator
        template.gpu_zonal_redundancy_disabled = True
    container.resources.startup_cpu_boost = True
    template.scaling.min_instance_count = config.min_instances
    template.scaling.max_instance_count = config.max_instances or 0
    template.max_instance_request_concurrency = config.concurrency or 0
    if config.request_timeout_s is not None:
        template.timeout.seconds = config.request_timeout_s


def write_probe(message: Any, probe: Probe) -> None:
    """Write a probe into its message; headers of an HTTP probe stay where it stays one."""
    message.initial_delay_seconds = probe.initial_delay_s
    message.period_seconds = probe.period_s
    message.timeout_seconds = probe.timeout_s
    message.failure_threshold = probe.failure_threshold
    if probe.kind == "http":
        message.http_get.path = probe.path or ""
        message.http_get.port = probe.port or 0
    elif probe.kind == "grpc":
        message.grpc.service = probe.path or ""
        message.grpc.port = probe.port or 0
    else:
        message.tcp_socket.port = probe.port or 0


def is_stopped(service: Any) -> bool:
    """Whether a ``Service`` message runs no instance because its manual count says so."""
    scaling = service.scaling
    return bool(scaling.HasField("manual_instance_count") and scaling.manual_instance_count == 0)


def stop(service: Any, current: Any, order: Order | Restore) -> tuple[str, ...]:
    """Write into a request that no instance runs, with the stamp and what the scaling was; return its mask."""
    from google.cloud import run_v2
    from google.protobuf import json_format

    service = run_v2.Service.pb(service)
    service.scaling.scaling_mode = run_v2.ServiceScaling.ScalingMode.MANUAL
    service.scaling.manual_instance_count = 0
    _keep_notes(service, current)
    service.annotations[EFFECT_LABEL] = order.effect_key
    service.annotations[INCIDENT_LABEL] = order.incident
    service.annotations[REVISION_NOTE] = order.revision
    if not is_stopped(current):
        service.annotations[SCALING_NOTE] = json_format.MessageToJson(current.scaling, indent=None)
    elif SCALING_NOTE in current.annotations:
        service.annotations[SCALING_NOTE] = current.annotations[SCALING_NOTE]
    return ("scaling", "annotations")


def resume(service: Any, current: Any) -> tuple[str, ...]:
    """Write into a request the scaling from before the stop; return its mask."""
    from google.cloud import run_v2
    from google.protobuf import json_format

    service = run_v2.Service.pb(service)
    noted = current.annotations.get(SCALING_NOTE, "")
    if noted:
        json_format.Parse(noted, service.scaling)
    else:  # a person stopped it: its template says how many
        service.scaling.scaling_mode = run_v2.ServiceScaling.ScalingMode.AUTOMATIC
    _keep_notes(service, current)
    return ("scaling", "annotations")


def _keep_notes(service: Any, current: Any) -> None:
    """Copy every annotation that is not ours."""
    ours = {EFFECT_LABEL, INCIDENT_LABEL, REVISION_NOTE, SCALING_NOTE}
    for name, value in current.annotations.items():
        if name not in ours:
            service.annotations[name] = value


def was_stopped(template: str) -> bool:
    """Whether a recorded template belongs to a service that ran no instance."""
    manual = manual_of(template) if template else None
    return manual is not None and manual.get("count") == 0


def stop_of(service: Any, effect_key: str) -> Work | None:
    """Return the work of the stop that carries a stamp, or None."""
    if not is_stopped(service) or service.annotations.get(EFFECT_LABEL) != effect_key:
        return None
    return Work(service=service.name, aim=f"scaling/{service.annotations.get(REVISION_NOTE) or effect_key}")


def stopping(work: Work, service: Any) -> Operation:
    """Return how far a stop is."""
    name = short(service.name)
    if not is_stopped(service):
        return work.operation(False, f"{name} is not stopped: its scaling was changed")
    if service.reconciling:
        return work.operation(None, f"{name} is being stopped")
    return work.operation(True, f"{name} is stopped")


def deleting(work: Work, native: Any | None) -> Operation:
    """Return how far a deletion is whose service is still there."""
    if native is not None and native.HasField("error"):
        return work.operation(False, native.error.message)
    return work.operation(None, f"{short(work.service)} is being deleted")


def deleted(work: Work) -> Operation:
    """Return the end of a deletion."""
    return work.operation(True, f"{short(work.service)} is not there any more")
