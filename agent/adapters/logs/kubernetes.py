"""The log of a pod's container through the API server: of the start that failed, from its first line."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from agent.adapters.kubernetes.client import KubernetesApi
from agent.core.intake.json_fields import time_of
from agent.core.intake.kubernetes import pod_revision, replica_set
from agent.core.intake.kubernetes_log import running_start, serving_container, status_of
from agent.errors import DependencyFailed, InputRejected, SreError
from agent.ports.logs import InstanceLog, LogLine

READ_BYTES: Final = 4 * 2**20  # of the beginning; the kubelet keeps 10 MiB of a container by default
LINE_CHARS: Final = 65_536
SECOND: Final = timedelta(seconds=1)  # the kubelet tells when a container ended in whole seconds
SETTLED: Final = timedelta(minutes=10)
"""What is told of a server that has run for so long is about this start; CrashLoopBackOff waits half of it at most."""

Json = Mapping[str, Any]


class PodLogs(NamedTuple):
    """Where the logs of a service's pods are.

    Attributes:
        api: The API server.
        namespace: Of the pods.
        container: The one that serves the model; None takes the one with an accelerator.
    """

    api: KubernetesApi
    namespace: str
    container: str | None


class KubernetesLogs:
    """Reads a container's log by ``pods/log``.

    Args:
        pods: Returns where the logs of a service are, None where it is not on Kubernetes.
    """

    def __init__(self, pods: Callable[[str], PodLogs | None]) -> None:
        self._pods = pods

    def instance_log(
        self,
        service: str,
        *,
        revision: str | None,
        instance: str | None,
        until: datetime,
        limit: int = 2000,
    ) -> InstanceLog | None:
        """Return the log of a pod's container, of the start that failed; see the port.

        That is the one that ended last, unless another one had run for ``SETTLED`` when the last thing was told. Where
        no pod is named, the newest pod of the revision is meant. None where the pod is gone or never ran. Lines after
        the second of ``until`` are left out: a later start says nothing about this trouble.
        """
        where = self._pods(service)
        if where is None or not (instance or revision):
            return None
        try:
            pod = _pod(where, revision, instance)
            if pod is None:
                return None
            return self._read(where, pod, service=service, until=until, limit=limit)
        except InputRejected:  # gone since, or no container of it has run
            return None
        except SreError as error:
            raise DependencyFailed(
                f"the log of {service!r} was not read", why=error.why, hint="no action needed: it is tried again"
            ) from error

    def _read(self, where: PodLogs, pod: Json, *, service: str, until: datetime, limit: int) -> InstanceLog:
        container = serving_container(pod, where.container)
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{where.namespace}/pods/{name}/log"
        query = {"container": container, "timestamps": "true"}
        query |= {"previous": "true"} if _has_failed_before(pod, container, until) else {}
        raw = _get(where.api, path, query | {"limitBytes": str(READ_BYTES)})
        cut = len(raw) >= READ_BYTES
        begin, end = _lines(raw.rpartition(b"\n")[0] if cut else raw), None
        upto = until + SECOND
        if cut:
            end = _lines(_get(where.api, path, query | {"tailLines": str(limit), "limitBytes": str(READ_BYTES)}))
            end = [line for line in end if (not begin or line.at > begin[-1].at) and line.at < upto]
        log = InstanceLog(service=service, revision=_revision(pod), instance=name, lines=(), complete=bool(begin))
        return log.with_ends([line for line in begin if line.at < upto], end, limit=limit)


def _get(api: KubernetesApi, path: str, query: Mapping[str, str]) -> bytes:
    with api.stream("GET", path, query=query) as response:
        return bytes(response.read(READ_BYTES + 1))


def _pod(where: PodLogs, revision: str | None, instance: str | None) -> Json | None:
    pods = f"/api/v1/namespaces/{where.namespace}/pods"
    if instance is not None:
        return where.api.find(f"{pods}/{instance}")
    mine = [pod for pod in where.api.items(pods) if _revision(pod) == revision]
    return max(mine, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), default=None)


def _revision(pod: Json) -> str | None:
    return pod_revision(pod) or replica_set(pod["metadata"]["name"])


def _has_failed_before(pod: Json, container: str, until: datetime) -> bool:
    """Whether the start of interest is the one before: the container ended, and waits or runs again."""
    row = status_of(pod, container)
    if "terminated" not in (row.get("lastState") or {}) or "terminated" in (row.get("state") or {}):
        return False
    start = running_start(pod, container)
    return start is None or start.since is None or until - start.since < SETTLED


def _lines(raw: bytes) -> list[LogLine]:
    """Read lines with the time that the kubelet puts before each; one without a time belongs to the line before."""
    found: list[LogLine] = []
    for line in raw.decode("utf-8", "replace").split("\n"):
        stamp, _, rest = line.partition(" ")
        at = time_of(stamp) if rest or stamp else None
        if at is not None:
            found.append(LogLine(at=at, text=rest[:LINE_CHARS]))
        elif found and line:
            found.append(LogLine(at=found[-1].at, text=line[:LINE_CHARS]))
    return found
