"""A workload of Kubernetes as our typed configuration: words verbatim and in order, secrets and references by name."""

from datetime import datetime
from typing import Any

from agent.adapters.platform.kubernetes.container import (
    accelerator_of,
    accelerators_of,
    probe_of,
    server_of,
)
from agent.adapters.platform.kubernetes.template import (
    RESUMES,
    effects_of,
    our_revision,
    set_revision,
    strategy_field,
    text_of,
)
from agent.adapters.platform.kubernetes.workload import Seen, annotations
from agent.adapters.platform.quantities import mib, quantity
from agent.adapters.platform.traffic import LATEST
from agent.core.service.serving import ConfigWriter, EnvVar, Live, ServingConfig, Strategy, Volume

Json = dict[str, Any]


def live_of(seen: Seen, *, ready: bool | None, says: str, writer: ConfigWriter | None) -> Live:
    """Return a workload as we know it.

    Raises:
        InputRejected: None of its containers is plainly the server.
    """
    serving = _serving(seen, ready=ready)
    return Live(
        service=seen.workload.service,
        platform="kubernetes",
        config=config_of(seen),
        uid=seen.uid,
        generation=seen.generation,
        etag=seen.etag,
        template=text_of(seen),
        traffic=LATEST,
        latest_ready_revision=serving,
        latest_created_revision=newest_revision(seen),
        stamps={revision: key for key, revision in effects_of(seen.body).items()},
        ready=ready,
        reconciling=ready is None,
        message=says if ready is False else "",
        spare_accelerator=None if seen.workload.spare is None else seen.workload.spare >= 1,
        resumes_with=_resumes(seen),
        changed_by=changed_by(seen.body),
        changed_at=changed_at(seen.body),
        can_stage=False,
        template_scales=False,
        scaled_by=seen.scaled_by,
        writer=writer,
        cluster_object=f"{seen.workload.kind}/{seen.workload.name} --namespace {seen.workload.namespace}",
    )


def _resumes(seen: Seen) -> tuple[int, int] | None:
    if seen.replicas:
        return None
    held = annotations(seen.body).get(RESUMES, "")
    count = int(held) if held.isdecimal() else 1
    return count, count


def newest_revision(seen: Seen) -> str:
    """Return the name of the present template's revision: of our effect, else of its ReplicaSet or its hash."""
    ours = our_revision(seen)
    if ours is not None:
        return ours
    newest = seen.newest_set
    if newest is not None and seen.observed:
        return set_revision(newest)
    return native_revision(seen) or f"{seen.workload.name}-generation-{seen.generation}"


def native_revision(seen: Seen) -> str | None:
    """Return how Kubernetes calls the present template, None until its controllers have seen it.

    Pods bear that name, a ReplicaSet's in front of their own, so signals do too.
    """
    if not seen.observed:
        return None
    if seen.workload.kind == "statefulset":
        return str(seen.status.get("updateRevision") or "") or None
    newest = seen.newest_set
    return str(newest["metadata"]["name"]) if newest is not None else None


def _serving(seen: Seen, *, ready: bool | None) -> str | None:
    """Return the newest revision of which a pod is ready."""
    if ready:
        return newest_revision(seen)
    if seen.workload.kind == "statefulset":
        if any(pod_ready(p) for p in seen.pods):
            return newest_revision(seen)
        return str(seen.status.get("currentRevision")) if any(pod_ready(p) for p in seen.old_pods) else None
    for one in seen.sets:
        if (one.get("status") or {}).get("readyReplicas"):
            current = seen.newest_set
            return newest_revision(seen) if seen.observed and one is current else set_revision(one)
    return None


def pod_ready(pod: Json) -> bool:
    """Whether a pod is ready and stays: one that is being deleted is not."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def config_of(seen: Seen) -> ServingConfig:
    """Return the configuration that a workload holds.

    Raises:
        InputRejected: None of its containers is plainly the server.
    """
    template = seen.spec["template"]
    container = server_of(template, seen.workload)
    limits = (container.get("resources") or {}).get("limits") or {}
    least, most = _instances(seen)
    return ServingConfig(
        image=container.get("image", ""),
        command=tuple(container.get("command") or ()),
        args=tuple(container.get("args") or ()),
        env=tuple(_env(e) for e in container.get("env") or ()),
        cpu=quantity(limits["cpu"]) if "cpu" in limits else None,
        memory_mib=mib(limits["memory"]) if "memory" in limits else None,
        accelerator=accelerator_of(template, container, seen.workload.accelerator),
        accelerator_count=accelerators_of(container) or 1,
        min_instances=least,
        max_instances=most,
        startup_probe=probe_of(container.get("startupProbe"), container),
        liveness_probe=probe_of(container.get("livenessProbe"), container),
        volumes=_volumes(template, container),
        strategy=strategy_of(seen.spec.get(strategy_field(seen.workload.kind))),
        progress_deadline_s=seen.spec.get("progressDeadlineSeconds"),
        termination_grace_s=template["spec"].get("terminationGracePeriodSeconds"),
    )


def _instances(seen: Seen) -> tuple[int, int]:
    if seen.autoscaler is not None:
        spec = seen.autoscaler["spec"]
        return int(spec.get("minReplicas") or 1), int(spec["maxReplicas"])
    return seen.replicas, seen.replicas


def strategy_of(strategy: Json | None) -> Strategy | None:
    """Return a strategy; of a StatefulSet, which never has a pod too many, the kind alone."""
    if not strategy:
        return None
    rolling = strategy.get("rollingUpdate") or {}
    surge, unavailable = rolling.get("maxSurge"), rolling.get("maxUnavailable")
    return Strategy(
        kind=strategy.get("type", "RollingUpdate"),
        max_surge=None if surge is None else str(surge),
        max_unavailable=None if unavailable is None else str(unavailable),
    )


def _env(entry: Json) -> EnvVar:
    """A reference names what it points at: ``secret/NAME:KEY``, ``configmap/NAME:KEY``, ``field/PATH``."""
    source: Json = entry.get("valueFrom") or {}
    if not source:
        return EnvVar(name=entry["name"], value=entry.get("value", ""))
    for ref, word in (("secretKeyRef", "secret"), ("configMapKeyRef", "configmap")):
        if ref in source:
            return EnvVar(name=entry["name"], secret=f"{word}/{source[ref].get('name', '')}:{source[ref].get('key')}")
    field = source.get("fieldRef", {}).get("fieldPath") or source.get("resourceFieldRef", {}).get("resource") or "?"
    return EnvVar(name=entry["name"], secret=f"field/{field}")


def _volumes(template: Json, container: Json) -> tuple[Volume, ...]:
    sources = {v["name"]: v for v in template["spec"].get("volumes") or ()}
    found = []
    for mount in container.get("volumeMounts") or ():
        csi: Json = sources.get(mount["name"], {}).get("csi") or {}
        held: Json = (csi.get("volumeAttributes") or {}) if "gcsfuse" in csi.get("driver", "") else {}
        found.append(
            Volume(
                name=mount["name"],
                mount_path=mount["mountPath"],
                bucket=held.get("bucketName"),
                read_only=bool(mount.get("readOnly", False)),
                options=tuple(o for o in held.get("mountOptions", "").split(",") if o),
            )
        )
    return tuple(found)


def manager_of(body: Json) -> str:
    """Say who wrote the wanted state last beside us, as the API server has noted it; empty where it does not tell."""
    newest = _last_writer(body, besides="sre-agent")
    return f"{newest.get('manager')!r} at {newest.get('time')}" if newest else ""


def changed_by(body: Json) -> str:
    """Return who wrote the wanted state last; empty where the API server does not tell."""
    return str(_last_writer(body).get("manager", ""))


def changed_at(body: Json) -> datetime | None:
    """Return when that was."""
    at = _last_writer(body).get("time")
    return datetime.fromisoformat(at) if at else None


def _last_writer(body: Json, *, besides: str = "") -> Json:
    """The newest entry of ``managedFields`` that owns a part of ``spec``; controllers write ``status``."""
    entries = [e for e in body["metadata"].get("managedFields") or [] if "f:spec" in (e.get("fieldsV1") or {})]
    others = [e for e in entries if e.get("manager") != besides]
    return max(others, key=lambda e: str(e.get("time", "")), default={})
