"""How far a rollout is: what the controllers say, held against the pods of the newest template."""

from datetime import datetime
from typing import Any, Final

from agent.adapters.platform.kubernetes.describe import changed_at, pod_ready, strategy_of
from agent.adapters.platform.kubernetes.template import PODS_LATER, STRATEGY_LATER, strategy_later
from agent.adapters.platform.kubernetes.workload import Seen, annotations

Json = dict[str, Any]

RESTARTS_TOO_MANY: Final = 2
"""A container that ended so often and waits to be started again does not come up by waiting."""
CREATING: Final = "ContainerCreating"
"""What the kubelet says while it fetches an image or mounts a volume."""


def progress(seen: Seen) -> tuple[bool | None, str]:
    """Return whether the newest template is up: True, False, or None while nobody knows; and what the platform says."""
    wanted = seen.replicas
    if not seen.observed:
        return None, "the controllers have not seen the change yet"
    if _complete(seen, wanted):
        return (True, f"{wanted} of {wanted} pods are ready") if wanted else (True, "it is scaled to zero")
    broken = next((says for pod in seen.pods if (says := _broken(pod))), "")
    if broken:
        return False, broken
    late = _deadline_exceeded(seen)
    if not late:
        return None, _waiting(seen, wanted)
    if any(_loading(pod) for pod in seen.pods):
        return None, f"{late}; a container still starts, so progressDeadlineSeconds is shorter than the start"
    why = "; ".join(part for part in (late, _refused(seen), *map(_held_up, seen.pods)) if part)
    return False, why


def _complete(seen: Seen, wanted: int) -> bool:
    status = seen.status
    ready, replicas = int(status.get("readyReplicas") or 0), int(status.get("replicas") or 0)
    updated = int(status.get("updatedReplicas") or 0)
    if seen.workload.kind == "statefulset" and status.get("updateRevision") == status.get("currentRevision"):
        updated = replicas  # counted only while a roll-out goes on
    pods = sum(1 for pod in seen.pods if pod_ready(pod))  # a StatefulSet counts one that it has just replaced
    return updated == replicas == ready == pods == wanted and not status.get("unavailableReplicas")


def _broken(pod: Json) -> str:
    """Return why a pod will not come up by waiting, or nothing."""
    for container in _containers(pod):
        waiting = _waits(container)
        if waiting.get("reason") != "CrashLoopBackOff" or int(container["restartCount"]) < RESTARTS_TOO_MANY:
            continue
        ended: Json = (container.get("lastState") or {}).get("terminated") or {}
        code = f"{ended.get('reason')} with exit code {ended.get('exitCode')}" if ended else "an end nobody saw"
        name = pod["metadata"]["name"]
        said = f": {ended['message'].strip()[-500:]}" if ended.get("message") else ""
        times = f"ended {container['restartCount']} times, last by {code}{said}"
        return f"CrashLoopBackOff: {container['name']} of pod {name} {times}"
    return ""


def _loading(pod: Json) -> bool:
    """Whether a container comes up without having failed before: it runs, or its image or volume is fetched."""
    if pod_ready(pod):
        return False
    rows = [row for row in _containers(pod) if not row["restartCount"]]
    return any("running" in (row.get("state") or {}) or _waits(row).get("reason") == CREATING for row in rows)


def _containers(pod: Json) -> list[Json]:
    """Return the statuses of a pod's containers; those that run before the others, such as a download, come first."""
    status: Json = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _waits(container: Json) -> Json:
    waiting: Json = (container.get("state") or {}).get("waiting") or {}
    return waiting


def _deadline_exceeded(seen: Seen) -> str:
    found = _condition(seen.status, "Progressing")
    if found.get("status") != "False" or found.get("reason") != "ProgressDeadlineExceeded":
        return ""
    since, changed = found.get("lastUpdateTime"), changed_at(seen.body)
    if since and changed is not None and datetime.fromisoformat(since) <= changed:
        return ""  # it speaks of the rollout before the last change
    return f"ProgressDeadlineExceeded: {found.get('message', '')}"


def _refused(seen: Seen) -> str:
    """Return why no pod was made, such as a quota or an admission webhook."""
    found = _condition(seen.status, "ReplicaFailure")
    return f"{found.get('reason')}: {found.get('message')}" if found.get("status") == "True" else ""


def _unschedulable(pod: Json) -> str:
    found = _condition(pod.get("status") or {}, "PodScheduled")
    return f"{found.get('reason')}: {found.get('message')}" if found.get("status") == "False" else ""


def _held_up(pod: Json) -> str:
    """Return why a pod does not come up: no node takes it, or a container cannot be started."""
    waits = (w for w in map(_waits, _containers(pod)) if w.get("reason") not in {None, CREATING, "PodInitializing"})
    said = (f"{w['reason']}: {w['message']}" if w.get("message") else str(w["reason"]) for w in waits)
    return _unschedulable(pod) or next(said, "")


def _waiting(seen: Seen, wanted: int) -> str:
    ready = sum(1 for pod in seen.pods if pod_ready(pod))
    why = _refused(seen) or next((w for pod in seen.pods if (w := _held_up(pod))), "")
    return f"{ready} of {wanted} pods of the newest template are ready" + (f"; {why}" if why else "")


def _condition(status: Json, kind: str) -> Json:
    found: Json = next((c for c in status.get("conditions") or [] if c.get("type") == kind), {})
    return found


def noted_pods(seen: Seen) -> tuple[Json, ...]:
    """Return the pods that the newest change still has to delete, as it was noted with its patch."""
    noted = annotations(seen.body).get(PODS_LATER, "").split()
    pods = (*seen.pods, *seen.old_pods)
    return tuple(p for p in pods if p["metadata"]["uid"] in noted and not p["metadata"].get("deletionTimestamp"))


def remaining(seen: Seen, *, ok: bool | None) -> str:
    """Return what only another call of the newest change does, or nothing; ``ok`` is how its rollout ended."""
    if ok is None and (pods := noted_pods(seen)):
        return f"pods that hold the rollout up are to be deleted: {', '.join(p['metadata']['name'] for p in pods)}"
    if ok is not None and STRATEGY_LATER in annotations(seen.body):
        later = strategy_of(strategy_later(seen))
        return f"the strategy is to be restored: {later.says if later else 'the default'}"
    return ""


def stuck_pods(seen: Seen) -> tuple[Json, ...]:
    """Return the pods that would hold up another template of a StatefulSet: its controller waits until they are ready.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback
    """
    if seen.workload.kind != "statefulset" or seen.spec.get("podManagementPolicy") == "Parallel":
        return ()
    pods = (*seen.pods, *seen.old_pods)
    return tuple(p for p in pods if not pod_ready(p) and not p["metadata"].get("deletionTimestamp"))
