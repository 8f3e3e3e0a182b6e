"""What is read of a cluster besides its workloads: what happens there, logs, whose a token is, and who of us leads."""

import secrets
import socket
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent.adapters.kubernetes.client import KubernetesApi, connect
from agent.adapters.kubernetes.container_log import FollowedLogs
from agent.adapters.kubernetes.follow import Following
from agent.adapters.kubernetes.lease import LeaderLease
from agent.adapters.kubernetes.token_review import ClusterTokenReview
from agent.adapters.logs.kubernetes import KubernetesLogs, PodLogs
from agent.app.kubernetes_environment import api_of, watched_workloads
from agent.core.service.cluster_rights import NODES, TOKENS, Right, lease_name, lease_rights, workload_rights
from agent.core.service.services import Service, Services, workload_ref
from agent.errors import InputRejected
from agent.ports.clock import Clock
from agent.ports.cluster import ContainerLogs, Follower, Leadership
from agent.ports.logs import Logs
from agent.settings import Settings


@dataclass(frozen=True, kw_only=True)
class WatchedCluster:
    """One cluster, and what is watched there."""

    follower: Follower
    logs: ContainerLogs
    services: tuple[Service, ...]


def kubernetes_logs(api: Callable[[Service], KubernetesApi], services: tuple[Service, ...]) -> Logs:
    """Return the logs of the pods of these services."""
    by_name = {s.name: s for s in services}

    def pods(name: str) -> PodLogs | None:
        service = by_name.get(name)
        if service is None:
            return None
        return PodLogs(api=api(service), namespace=workload_ref(service).namespace, container=service.container)

    return KubernetesLogs(pods)


def watched_clusters(
    api: Callable[[Service], KubernetesApi], services: tuple[Service, ...]
) -> tuple[WatchedCluster, ...]:
    """Return the clusters of these services, each once."""
    found: dict[KubernetesApi, list[Service]] = defaultdict(list)
    for service in services:
        found[api(service)].append(service)
    return tuple(
        WatchedCluster(follower=Following(at), logs=FollowedLogs(at), services=tuple(there))
        for at, there in found.items()
    )


def own_api(settings: Settings, open_client: Callable[[str | None], Any] = connect) -> KubernetesApi:
    """Return the API server of the cluster that PLATFORM names: the one around us, in a cluster."""
    return KubernetesApi(lambda: open_client(settings.platform.partition(":")[2] or None))


def token_review_of(api: KubernetesApi) -> ClusterTokenReview:
    """Return what asks the cluster about its own tokens."""
    return ClusterTokenReview(api)


def open_leadership(api: KubernetesApi, lease: str, clock: Clock) -> Leadership:
    """Return the lock among replicas.

    Args:
        api: The API server.
        lease: ``NAMESPACE/NAME`` of the Lease.
        clock: Stamps the Lease.

    Raises:
        InputRejected: That is no such name.
    """
    try:
        lease_name(lease)
    except ValueError as error:
        raise InputRejected(
            "nothing was started",
            why=f"the lease is {lease[:80]!r}, want NAMESPACE/NAME",
            hint="such as: sre-agent up --lease sre-agent/sre-agent",
        ) from error
    namespace, _, name = lease.partition("/")
    holder = f"{socket.gethostname()}-{secrets.token_hex(4)}"  # a pod's host name is the pod's
    return LeaderLease(api, namespace=namespace, name=name, holder=holder, clock=clock)


def is_allowed(api: KubernetesApi, right: Right) -> bool:
    """Ask the API server whether we have a right (SelfSubjectAccessReview); everybody may ask that of themselves.

    Raises:
        SreError: The API server did not answer.
    """
    resource, _, subresource = right.resource.partition("/")
    asked = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource}
    asked |= {"namespace": right.namespace, "name": right.name}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    answer = api.create(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", kind | {"spec": {"resourceAttributes": asked}}
    )
    return bool((answer.get("status") or {}).get("allowed"))


def missing_rights(settings: Settings, services: Services) -> tuple[Right, ...]:
    """Return the rights of the agent that whoever asks does not have, in the clusters of the watched workloads.

    Raises:
        SettingsRejected: No workload is watched, or nothing leads to an API server.
        SreError: An API server did not answer.
    """
    api = api_of(settings)
    missing: list[Right] = []
    for cluster in watched_clusters(api, watched_workloads(settings, services)):
        at = api(cluster.services[0])
        missing += [right for right in (*workload_rights(cluster.services), *NODES) if not is_allowed(at, right)]
    around = own_api(settings)
    own = (*TOKENS, *(lease_rights(settings.lease) if settings.lease else ()))
    missing += [right for right in own if not is_allowed(around, right)]
    return tuple(dict.fromkeys(missing))
