"""A Cloud Run service as our typed configuration: words verbatim and in order, secrets by name."""

from datetime import UTC
from typing import Any

from agent.adapters.platform.cloud_run.template import effect_of, service_text, traffic_of
from agent.adapters.platform.quantities import mib, quantity
from agent.core.service.serving import EnvVar, Live, Probe, ServingConfig, Volume
from agent.errors import InputRejected

GPU = "nvidia.com/gpu"


def live_of(service: Any, revisions: list[Any], *, spare_accelerator: bool | None) -> Live:
    """Return a ``Service`` message and its ``Revision`` messages as we know them.

    Raises:
        InputRejected: It has several containers, and none of them is plainly the server.
    """
    scaling, config = service.scaling, config_of(service.template)
    ready, resumes = readiness(service), (config.min_instances, config.max_instances or 1)
    says = "" if ready else condition_says(service.terminal_condition)
    if scaling.HasField("manual_instance_count"):
        count = scaling.manual_instance_count
        config = config.with_(min_instances=count, max_instances=count)
        ready, says = (ready, says) if count else (False, "it is stopped: its manual instance count is 0")
    return Live(
        service=short(service.name),
        platform="cloud_run",
        config=config,
        uid=service.uid,
        generation=service.generation,
        etag=service.etag,
        template=service_text(service),
        traffic=traffic_of(service.traffic),
        latest_ready_revision=short(service.latest_ready_revision) or None,
        latest_created_revision=short(service.latest_created_revision) or None,
        stamps={short(r.name): key for r in revisions if (key := effect_of(short(r.name), r.labels)) is not None},
        ready=ready,
        reconciling=service.reconciling,
        message=says,
        spare_accelerator=spare_accelerator,
        resumes_with=resumes if config.max_instances == 0 else None,
        url=service.uri,
        changed_by=service.last_modifier,
        changed_at=service.update_time.ToDatetime(UTC) if service.HasField("update_time") else None,
    )


def readiness(service: Any) -> bool | None:
    """Whether the newest revision serves; None while it is not known (docs/facts.md 4.1)."""
    state = state_of(service.terminal_condition)
    if service.reconciling or state not in {"SUCCEEDED", "FAILED"}:
        return None
    return state == "SUCCEEDED" and service.latest_ready_revision == service.latest_created_revision


def state_of(condition: Any) -> str:
    """Return a condition's state without its prefix: PENDING, RECONCILING, FAILED, SUCCEEDED or STATE_UNSPECIFIED."""
    found = condition.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number.get(condition.state)
    return found.name.removeprefix("CONDITION_") if found is not None else "STATE_UNSPECIFIED"


def condition_says(condition: Any) -> str:
    """Return what a condition says: its reason and its message; untrusted text."""
    which = condition.WhichOneof("reasons")
    reason = ""
    if which is not None:
        field = condition.DESCRIPTOR.fields_by_name[which]
        named = field.enum_type.values_by_number.get(getattr(condition, which))
        reason = named.name if named is not None else str(getattr(condition, which))
    return ": ".join(part for part in (reason, condition.message) if part)


def config_of(template: Any) -> ServingConfig:
    """Return the configuration that a ``RevisionTemplate`` message holds.

    Raises:
        InputRejected: It has several containers, and none of them is plainly the server.
    """
    container = server_of(template)
    limits = container.resources.limits
    return ServingConfig(
        image=container.image,
        command=tuple(container.command),
        args=tuple(container.args),
        env=tuple(_env(e) for e in container.env),
        cpu=quantity(limits["cpu"]) if "cpu" in limits else None,
        memory_mib=mib(limits["memory"]) if "memory" in limits else None,
        accelerator=template.node_selector.accelerator or None,
        accelerator_count=int(limits[GPU]) if GPU in limits else 1,
        min_instances=template.scaling.min_instance_count,
        max_instances=template.scaling.max_instance_count or None,
        concurrency=template.max_instance_request_concurrency or None,
        request_timeout_s=template.timeout.seconds if template.HasField("timeout") else None,
        startup_probe=_probe(container.startup_probe) if container.HasField("startup_probe") else None,
        liveness_probe=_probe(container.liveness_probe) if container.HasField("liveness_probe") else None,
        volumes=_volumes(template, container),
    )


def server_of(template: Any) -> Any:
    """Return the container that serves the model: the one with the GPU, else the one with a port, else the only one.

    Raises:
        InputRejected: None of several is plainly it.
    """
    containers = list(template.containers)
    for marked in (
        [c for c in containers if GPU in c.resources.limits],
        [c for c in containers if c.ports],
        containers,
    ):
        if len(marked) == 1:
            return marked[0]
    names = ", ".join(c.name or c.image for c in containers) or "none"
    raise InputRejected(
        "the service was not described",
        why=f"of its containers ({names}) none is plainly the server: want one with a GPU, or one with a port",
        hint="give the server's container the GPU or the port",
    )


def short(name: str) -> str:
    """Return the last part of a full resource name."""
    return name.rsplit("/", 1)[-1]


def _env(entry: Any) -> EnvVar:
    if entry.HasField("value_source"):
        return EnvVar(name=entry.name, secret=short(entry.value_source.secret_key_ref.secret))
    return EnvVar(name=entry.name, value=entry.value)


def _probe(probe: Any) -> Probe:
    """Zeros stand for the defaults that run_v2.Probe documents: timeout 1 s, period 10 s, threshold 3."""
    kind = {"http_get": "http", "grpc": "grpc"}.get(probe.WhichOneof("probe_type") or "", "tcp")
    port = {"http": probe.http_get.port, "grpc": probe.grpc.port, "tcp": probe.tcp_socket.port}[kind]
    path = {"http": probe.http_get.path, "grpc": probe.grpc.service, "tcp": ""}[kind]
    return Probe(
        kind=kind,
        path=path or None,
        port=port or None,
        initial_delay_s=probe.initial_delay_seconds,
        period_s=probe.period_seconds or 10,
        timeout_s=probe.timeout_seconds or 1,
        failure_threshold=probe.failure_threshold or 3,
    )


def _volumes(template: Any, container: Any) -> tuple[Volume, ...]:
    sources = {v.name: v for v in template.volumes}
    found = []
    for mount in container.volume_mounts:
        source = sources.get(mount.name)
        bucket = source is not None and source.WhichOneof("volume_type") == "gcs"
        found.append(
            Volume(
                name=mount.name,
                mount_path=mount.mount_path,
                bucket=source.gcs.bucket if bucket and source is not None else None,
                read_only=bool(source.gcs.read_only) if bucket and source is not None else False,
                options=tuple(source.gcs.mount_options) if bucket and source is not None else (),
            )
        )
    return tuple(found)
