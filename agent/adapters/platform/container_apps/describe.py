"""A container app as our typed configuration: flags verbatim and in order, secrets by name."""

from typing import Any

from agent.adapters.platform.container_apps.app_ref import AppRef, Environment, Json, Seen
from agent.adapters.platform.container_apps.template import (
    STAMP_ENV,
    effect_of,
    text_of,
    traffic_of,
    uid_of,
    version_token,
)
from agent.adapters.platform.quantities import mib
from agent.core.intake.json_fields import time_of
from agent.core.service.serving import EnvVar, Live, Probe, ServingConfig, Volume
from agent.errors import InputRejected

_PROBES = {"startup_probe": "startup", "liveness_probe": "liveness"}


def live_of(seen: Seen, *, spare_accelerator: bool | None) -> Live:
    """Return an app as we know it.

    Raises:
        InputRejected: It has several containers, and none of them is plainly the server.
    """
    ref, config = seen.ref, config_of(seen)
    resumes = (config.min_instances, config.max_instances or 1)
    ready, says = readiness(seen)
    if seen.is_stopped:
        config = config.with_(min_instances=0, max_instances=0)
        ready, says = False, "it is stopped"
    system = seen.body.get("systemData") or {}
    newest = seen.revision(str(seen.properties.get("latestRevisionName") or "")) or {}
    made = time_of(str(newest.get("createdTime") or ""))
    return Live(
        service=ref.name,
        platform="container_apps",
        config=config,
        uid=uid_of(seen),
        generation=int(made.timestamp()) if made else 0,
        etag=version_token(seen),
        template=text_of(seen),
        traffic=traffic_of(seen),
        latest_ready_revision=ref.ours(seen.newest_ready) or None,
        latest_created_revision=ref.ours(seen.newest) or None,
        stamps=stamps_of(seen),
        ready=ready,
        reconciling=seen.in_progress,
        message="" if ready else says,
        spare_accelerator=spare_accelerator,
        resumes_with=resumes if seen.is_stopped else None,
        url=f"https://{seen.ingress['fqdn']}" if seen.ingress.get("fqdn") else "",
        changed_by=str(system.get("lastModifiedBy") or ""),
        changed_at=time_of(str(system.get("lastModifiedAt") or "")),
        can_stage=seen.is_multiple,
    )


def stamps_of(seen: Seen) -> dict[str, str]:
    """Return the effects that made revisions, by our name of each; the template has one that is being made."""
    made = [(str(r.get("name")), (r.get("properties") or {}).get("template") or {}) for r in seen.revisions]
    found = [(name, effect_of(name, template)) for name, template in (*made, (seen.newest, seen.template))]
    return {seen.ref.ours(name): key for name, key in found if key is not None}


def readiness(seen: Seen) -> tuple[bool | None, str]:
    """Whether the newest revision serves, None while it is not known; and what Azure says of it."""
    revision = seen.revision(seen.newest)
    if revision is None:
        return (None, "its newest revision is not there yet") if seen.in_progress else (None, "it has no revision")
    return state_of(revision)


def state_of(revision: Json) -> tuple[bool | None, str]:
    """Whether a revision came up: True, False, or None while that is open; and what Azure says of it.

    ``Provisioned`` alone proves nothing: a revision that crashes later is Degraded or Failed. Untrusted text.
    """
    provisioning, running, health = (
        str(revision.get(k) or "") for k in ("provisioningState", "runningState", "healthState")
    )
    error = str(revision.get("provisioningError") or "")
    said = ", ".join(f"{k} {v}" for k, v in (("provisioning", provisioning), ("running", running)) if v)
    if provisioning in {"Failed", "Deprovisioned"} or running in {"Failed", "ActivationFailed", "Stopped"}:
        return False, error or f"Azure gives no reason ({said})"
    sleeps = running.lower().startswith("scale")  # "ScaledToZero"
    open_still = running in {"Processing", "Degraded", "Unknown"}
    if provisioning == "Provisioned" and (health == "Healthy" or sleeps) and not open_still:
        return True, said
    waits = not int(revision.get("replicas") or 0) and provisioning == "Provisioning"
    hint = "no replica is assigned yet: the workload profile may have no room (AssigningReplica)" if waits else ""
    return None, "; ".join(filter(None, (said, error, hint)))


def config_of(seen: Seen) -> ServingConfig:
    """Return the configuration of an app's template.

    Raises:
        InputRejected: It has several containers, and none of them is plainly the server.
    """
    return read_config(seen.ref, seen.template, seen.properties.get("workloadProfileName"), seen.environment)


def read_config(ref: AppRef, template: Json, profile: str | None, environment: Environment) -> ServingConfig:
    """Return the configuration that a template and a workload profile hold.

    Raises:
        InputRejected: It has several containers, and none of them is plainly the server.
    """
    container, scale = server_of(ref, template), template.get("scale") or {}
    resources = container.get("resources") or {}
    accelerator, count = environment.accelerator(profile, ref.accelerator)
    probes = {field: _probe(container, kind) for field, kind in _PROBES.items()}
    return ServingConfig(
        image=str(container.get("image") or ""),
        command=tuple(container.get("command") or ()),
        args=tuple(container.get("args") or ()),
        env=tuple(_env(e) for e in container.get("env") or [] if e.get("name") not in STAMP_ENV),
        cpu=float(resources["cpu"]) if resources.get("cpu") is not None else None,
        memory_mib=mib(resources["memory"]) if resources.get("memory") is not None else None,
        accelerator=accelerator,
        accelerator_count=count,
        min_instances=int(scale.get("minReplicas") or 0),
        max_instances=int(scale["maxReplicas"]) if scale.get("maxReplicas") else None,
        startup_probe=probes["startup_probe"],
        liveness_probe=probes["liveness_probe"],
        volumes=tuple(
            Volume(name=str(m.get("volumeName")), mount_path=str(m.get("mountPath")), read_only=False)
            for m in container.get("volumeMounts") or []
        ),
        termination_grace_s=template.get("terminationGracePeriodSeconds"),
    )


def server_of(ref: AppRef, template: Json) -> Json:
    """Return the container that serves the model: the named one, else the only one that names vLLM.

    Raises:
        InputRejected: There is none of that name, or none of several is plainly it.
    """
    containers: list[Json] = template.get("containers") or []
    names = ", ".join(str(c.get("name")) for c in containers) or "none"
    if ref.container is not None:
        found = [c for c in containers if c.get("name") == ref.container]
    else:
        found = [c for c in containers if "vllm" in f"{c.get('name')} {c.get('image')}".lower()] or containers
    if len(found) == 1:
        return found[0]
    why = f"it has no container {ref.container!r}" if ref.container else "none of several is plainly the server"
    raise InputRejected(
        f"{ref.name!r} was not described",
        why=f"{why}; its containers are {names}",
        hint="name the server's container in services.toml: container",
    )


def _env(entry: Json) -> EnvVar:
    if entry.get("secretRef"):
        return EnvVar(name=str(entry["name"]), secret=str(entry["secretRef"]))
    return EnvVar(name=str(entry["name"]), value=str(entry.get("value") or ""))


def probe_of_kind(container: Json, kind: str) -> Json | None:
    """Return a probe of a container by its type, startup, liveness or readiness; None without one."""
    probes: list[Json] = container.get("probes") or []
    return next((p for p in probes if str(p.get("type")).lower() == kind), None)


def _probe(container: Json, kind: str) -> Probe | None:
    """What a probe leaves out is Azure's default: period 10 s, timeout 1 s, 3 failures (ContainerAppProbe, 5.1.0)."""
    probe = probe_of_kind(container, kind)
    if probe is None:
        return None
    how: Any = probe.get("httpGet") or probe.get("tcpSocket") or {}
    return Probe(
        kind="http" if probe.get("httpGet") else "tcp",
        path=how.get("path"),
        port=how.get("port"),
        initial_delay_s=probe.get("initialDelaySeconds") or 0,
        period_s=probe.get("periodSeconds") or 10,
        timeout_s=probe.get("timeoutSeconds") or 1,
        failure_threshold=probe.get("failureThreshold") or 3,
    )
