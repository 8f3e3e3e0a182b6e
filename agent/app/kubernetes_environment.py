"""Kubernetes as a place: the workloads of services.toml, each in the cluster of its context."""

from collections.abc import Callable
from functools import cache
from typing import Any

from agent.adapters.kubernetes.client import KubernetesApi, connect
from agent.core.service.services import Service, Services
from agent.errors import SettingsRejected
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
