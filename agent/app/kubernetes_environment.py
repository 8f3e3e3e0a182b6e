"""Kubernetes as a place: the workloads of services.toml, each in the cluster of its context."""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

from agent.adapters.kubernetes.client import Json, KubernetesApi, connect, in_cluster
from agent.adapters.platform.completion import TIMEOUT_S, CompletionClient
from agent.adapters.platform.kubernetes.measure import Meter
from agent.adapters.platform.kubernetes.platform import KubernetesPlatform
from agent.adapters.platform.kubernetes.pod_http import ApiServerProxy, pod_url, proxy_path
from agent.adapters.platform.kubernetes.workload import Seen, Workload
from agent.core.service.services import Service, Services
from agent.errors import SettingsRejected
from agent.ports.clock import Clock
from agent.settings import Settings


def watched_workloads(settings: Settings, services: Services) -> tuple[Service, ...]:
    """Return the services of this platform.

    Raises:
        SettingsRejected: There is none; an empty selection is not all of them.
    """
    found = tuple(s for s in services.services if s.platform == "kubernetes")
    if not found:
        raise SettingsRejected(
            f"PLATFORM {settings.platform!r} has nothing to work on",
            why="services.toml watches no kubernetes service",
            hint="add the service to services.toml: platform = 'kubernetes', namespace, workload = 'deployment/NAME'",
        )
    return found


def api_of(
    settings: Settings, open_client: Callable[[str | None], Any] = connect
) -> Callable[[Service], KubernetesApi]:
    """Return what gives the API server of a service: one client for each context, made at its first call.

    Args:
        settings: ``kubernetes:CONTEXT`` names the context of services that name none.
        open_client: Makes the official client of a context.
    """
    named = settings.platform.partition(":")[2] or None

    @cache
    def of_context(context: str | None) -> KubernetesApi:
        return KubernetesApi(lambda: open_client(context))

    return lambda service: of_context(service.context or named)


def kubernetes_platform(
    settings: Settings,
    services: Services,
    clock: Clock,
    *,
    key_of: Callable[[str], str | None],
    open_client: Callable[[str | None], Any] = connect,
) -> KubernetesPlatform:
    """Return the platform over every watched workload.

    Raises:
        SettingsRejected: No workload is watched.
    """
    watched = {s.name: s for s in watched_workloads(settings, services)}
    of = api_of(settings, open_client)

    def inside(seen: Seen) -> bool:
        return ":" not in settings.platform and watched[seen.workload.service].context is None and in_cluster()

    def asking(seen: Seen) -> CompletionClient:
        api = of(watched[seen.workload.service])
        way = None if inside(seen) else ApiServerProxy(api, timeout_s=TIMEOUT_S)
        return CompletionClient(id_token=None, monotonic=time.monotonic, api_key=key_of, http=way)

    def address(seen: Seen, pod: Json, port: int) -> str:
        return (pod_url if inside(seen) else proxy_path)(seen, pod, port)

    meter = Meter(asking, address, clock, key_name=lambda name: watched[name].api_key)
    return KubernetesPlatform({n: Workload.of(s) for n, s in watched.items()}, lambda n: of(watched[n]), meter)
