"""Azure as a place: the container apps of services.toml, in the subscription of PLATFORM."""

import re
import time
from collections.abc import Callable
from typing import Any

from agent.adapters.azure.identity import container_apps_client, credential, log_analytics_client
from agent.adapters.http.client import HttpClient
from agent.adapters.logs.container_app_stream import ContainerAppStream, LogsWithStream, ReplicaStreams
from agent.adapters.logs.log_analytics import LogAnalyticsLogs
from agent.adapters.model.id_tokens import google_id_token
from agent.adapters.platform.completion import CompletionClient
from agent.adapters.platform.container_apps.api import ContainerAppsApi
from agent.adapters.platform.container_apps.app_ref import AppRef
from agent.adapters.platform.container_apps.describe import server_of
from agent.adapters.platform.container_apps.measure import Meter
from agent.adapters.platform.container_apps.platform import ContainerAppsPlatform
from agent.core.service.services import Service, Services
from agent.errors import SettingsRejected
from agent.ports.clock import Clock
from agent.ports.logs import Logs
from agent.settings import Settings

_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def subscription_of(settings: Settings) -> str:
    """Return the subscription of ``container_apps:SUBSCRIPTION[/TENANT/CLIENT]``.

    Raises:
        SettingsRejected: It is none.
    """
    return _parts(settings)[0]


def _parts(settings: Settings) -> list[str]:
    found = settings.platform.partition(":")[2].split("/")
    if len(found) not in {1, 3} or not all(map(_ID.fullmatch, found)):
        raise SettingsRejected(
            f"PLATFORM {settings.platform!r} was not read",
            why="want container_apps:SUBSCRIPTION, or container_apps:SUBSCRIPTION/TENANT/CLIENT, each an id",
            hint="az account show prints the id of the subscription and of its tenant",
        )
    return found


def watched_apps(settings: Settings, services: Services) -> tuple[Service, ...]:
    """Return the services of this platform.

    Raises:
        SettingsRejected: There is none, as an empty selection is not all of them; or one names no resource group.
    """
    found = tuple(s for s in services.services if s.platform == "container_apps")
    homeless = [s.name for s in found if s.resource_group is None]
    if not found or homeless:
        raise SettingsRejected(
            f"PLATFORM {settings.platform!r} has nothing to work on",
            why=f"{', '.join(homeless)} names no resource group"
            if found
            else "services.toml watches no container_apps service",
            hint="in services.toml: platform = 'container_apps', resource_group = 'NAME'",
        )
    return found


def app_ref(settings: Settings, service: Service) -> AppRef:
    """Return which app a service is."""
    return AppRef(
        subscription=subscription_of(settings),
        group=service.resource_group or "",
        name=service.name,
        accelerator=service.accelerator,
        container=service.container,
        environment=service.environment,
        has_key=service.api_key is not None,
    )


def azure_credential(settings: Settings) -> Any:
    """Return who we are on Azure; with a tenant and a client, whoever trusts this process's Google identity there."""
    return credential("/".join(_parts(settings)[1:]) or None, google_id_token)


def arm_api(settings: Settings, connect: Callable[[], Any] | None = None) -> ContainerAppsApi:
    """Return what calls ARM.

    Args:
        settings: ``container_apps:SUBSCRIPTION``.
        connect: Makes the official client; with this process's own identity when None.
    """
    subscription = subscription_of(settings)

    def client() -> Any:
        return container_apps_client(azure_credential(settings), subscription)

    return ContainerAppsApi(connect or client, subscription)


def container_apps_platform(
    settings: Settings,
    services: Services,
    clock: Clock,
    *,
    key_of: Callable[[str], str | None],
    api: ContainerAppsApi,
) -> ContainerAppsPlatform:
    """Return the platform over every watched app.

    Raises:
        SettingsRejected: No app is watched.
    """
    watched = {s.name: s for s in watched_apps(settings, services)}
    asking = CompletionClient(id_token=None, monotonic=time.monotonic, api_key=key_of)
    meter = Meter(asking, clock, key_name=lambda name: watched[name].api_key)
    return ContainerAppsPlatform(
        api,
        {name: app_ref(settings, service) for name, service in watched.items()},
        meter,
        spare={name: s.spare_accelerators for name, s in watched.items()}.get,
    )


def azure_logs(
    settings: Settings,
    services: Services,
    api: ContainerAppsApi,
    *,
    connect: Callable[[], Any] | None = None,
    http: HttpClient | None = None,
) -> Logs:
    """Return the logs of the watched apps, each from the workspace of its environment.

    The log stream is asked besides only where the operator switched it on: the right to it could open a shell.

    Args:
        settings: ``container_apps:SUBSCRIPTION``.
        services: What is watched.
        api: Calls ARM.
        connect: Makes the official client of Log Analytics; with this process's own identity when None.
        http: Asks the log stream; a client of its own when None.
    """
    refs = {s.name: app_ref(settings, s) for s in watched_apps(settings, services)}
    kept = LogAnalyticsLogs(
        connect or (lambda: log_analytics_client(azure_credential(settings))),
        lambda name: api.seen(refs[name]).environment.workspace if name in refs else None,
        lambda name, revision: refs[name].native(revision) if name in refs else revision,
    )
    if not settings.container_apps_log_stream:
        return kept

    def streams(name: str, revision: str) -> ReplicaStreams | None:
        return _streams_of(api, refs[name], revision) if name in refs else None

    return LogsWithStream(kept, ContainerAppStream(streams, http))


def readable_streams(api: ContainerAppsApi, ref: AppRef, native: str) -> int:
    """Return how many replicas of a revision have a log stream that this identity may read; no line of it is read.

    Args:
        api: Calls ARM.
        ref: The app.
        native: Azure's name of the revision.

    Raises:
        SreError: The right to the replicas or to the token is missing, or Azure did not answer.
    """
    replicas = len(api.replicas(ref, native))
    api.developer_token(ref)
    return replicas


def _streams_of(api: ContainerAppsApi, ref: AppRef, revision: str) -> ReplicaStreams:
    seen, native = api.seen(ref), ref.native(revision)
    template = (seen.revision(native) or {}).get("template") or seen.template
    return ReplicaStreams(
        container=str(server_of(ref, template).get("name")),
        replicas=api.replicas(ref, native),
        token=lambda: api.developer_token(ref),
    )
