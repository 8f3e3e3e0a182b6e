"""Where services run and where their logs are read: a rehearsal, the cloud, or nowhere that we know."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.app.catalogues import log_project_of, read_capacity
from agent.app.operating_system import require_linux
from agent.core.service.services import Services
from agent.errors import InputRejected, SettingsRejected
from agent.ports.audit_log import AuditLog
from agent.ports.clock import Clock
from agent.ports.logs import Logs
from agent.ports.platform import Platform
from agent.ports.token_review import TokenReview
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.logs.replay_logs import ReplayLogs
    from agent.adapters.platform.rehearsal.outcome import Compute
    from agent.adapters.platform.rehearsal.platform import RehearsalPlatform
    from agent.app.cluster_access import WatchedCluster


@dataclass(frozen=True, kw_only=True)
class RuntimeEnvironment:
    """Where services run and where their logs are read.

    Attributes:
        rehearsal: The simulated platform, where this is a rehearsal.
        replay_logs: Where plain logs of a replay are kept, where nothing else has them.
        wait_factor: What waits are divided by; screens say so when it is above 1.
        token_review: Asks the cluster about its own tokens, where services run in one.
        clusters: The clusters that a monitor can follow.
        audit_log: Tells who changed a service, where the platform keeps that.
    """

    platform_of: Callable[[str], Platform | None]
    logs: Logs
    rehearsal: "RehearsalPlatform | None" = None
    replay_logs: "ReplayLogs | None" = None
    wait_factor: float = 1.0
    token_review: TokenReview | None = None
    clusters: "tuple[WatchedCluster, ...]" = ()
    audit_log: AuditLog | None = None


def open_environment(settings: Settings, services: Services, clock: Clock) -> RuntimeEnvironment:
    """Return the environment that the settings name.

    Raises:
        SettingsRejected: There is no adapter for it.
        InputRejected: The rehearsal's folder holds no scenario.
    """
    openers: dict[str, Callable[[Settings, Services, Clock], RuntimeEnvironment]] = {
        "rehearsal": _rehearsal,
        "cloud_run": _cloud_run,
        "kubernetes": kubernetes,
        "container_apps": container_apps,
        "ec2": _ec2,
        "tpu_vm": _tpu_vm,
        "host": _host,
        "none": _logs_only,
    }
    if (open_it := openers.get(settings.platform.partition(":")[0])) is not None:
        return open_it(settings, services, clock)
    raise SettingsRejected(
        f"PLATFORM {settings.platform!r} is not available here",
        why="there is no adapter for it",
        hint="use rehearsal:<folder>, cloud_run:<project>, kubernetes[:<context>], ec2[:<profile>], "
        "container_apps:<subscription>, tpu_vm:<project> or host",
    )


def cloud_log_entries(settings: Settings, log_filter: str, *, after: datetime) -> Iterator[dict[str, Any]]:
    """Yield entries of Cloud Logging for a replay, oldest first.

    Raises:
        InputRejected: The filter cannot be read, or no project is known.
        DependencyFailed: Cloud Logging did not answer.
    """
    from agent.adapters.logs.cloud_logging import CloudLogs

    since = after.isoformat().replace("+00:00", "Z")
    logs = CloudLogs(log_project_of(settings), emulator=settings.logging_emulator)
    return logs.entries(f'timestamp>="{since}"\n({log_filter})', limit=100_000)


def _cloud_run(settings: Settings, services: Services, clock: Clock) -> RuntimeEnvironment:
    """Return the environment of ``cloud_run:PROJECT``; services of other projects and platforms have no adapter here.

    Raises:
        SettingsRejected: No watched service runs on Cloud Run in that project.
    """
    from agent.adapters.logs.cloud_logging import CloudLogs
    from agent.adapters.model.id_tokens import IdTokens, google_id_token
    from agent.adapters.platform.cloud_run.api import CloudRunApi, clients_at, default_clients
    from agent.adapters.platform.cloud_run.measure import Meter
    from agent.adapters.platform.cloud_run.platform import CloudRunPlatform
    from agent.adapters.platform.completion import CompletionClient

    project = settings.platform.removeprefix("cloud_run:")
    names = {
        s.name: f"projects/{s.project}/locations/{s.location}/services/{s.name}"
        for s in services.services
        if s.platform == "cloud_run" and s.project == project
    }
    if not names:
        raise SettingsRejected(
            f"PLATFORM {settings.platform!r} has nothing to work on",
            why=f"services.toml watches no cloud_run service of project {project!r}",
            hint="name another project, or add the service to services.toml",
        )
    client = CompletionClient(
        id_token=IdTokens(google_id_token, lambda: clock.now().timestamp()).token,
        monotonic=time.monotonic,
        api_key=lambda service: server_key_of(settings, services, service),
    )
    meter = Meter(client, clock, key_name=lambda service: services.service(service).api_key)
    spare = {s.name: s.spare_accelerators for s in services.services}
    stand_in = settings.cloud_run_emulator
    api = CloudRunApi(default_clients if stand_in is None else lambda: clients_at(stand_in))
    platform = CloudRunPlatform(api, names, meter, spare=spare.get)
    logs = CloudLogs(project, emulator=settings.logging_emulator)
    return RuntimeEnvironment(platform_of=lambda name: platform if name in names else None, logs=logs, audit_log=logs)


def server_key_of(settings: Settings, services: Services, service: str) -> str | None:
    """Return the server's own key: the one that services.toml names for it, otherwise the model's.

    The model's key is shown to the model's own service alone, and where another key is named not even to that.
    """
    watched = services.watched(service)
    if watched is not None and watched.api_key is not None:
        named = settings.service_api_keys.get(watched.api_key)
        return named.get_secret_value() if named is not None else None
    own = re.compile(rf"{re.escape(service)}-(?:[a-z0-9]{{10}}-[a-z]{{1,4}}\.a|\d+\.[a-z]+-[a-z]+\d+)\.run\.app")
    hosts = (urlsplit(url).hostname or "" for url in settings.model_endpoints)
    if settings.model_api_key is None or not any(own.fullmatch(host) for host in hosts):
        return None
    return settings.model_api_key.get_secret_value()


def kubernetes(
    settings: Settings, services: Services, clock: Clock, open_client: Callable[[str | None], Any] | None = None
) -> RuntimeEnvironment:
    """Return the environment of ``kubernetes[:CONTEXT]``.

    Args:
        settings: The installation.
        services: What is watched; services of other platforms have no adapter here.
        clock: When something was measured.
        open_client: Makes the official client of a context; as kubectl does when None.

    Raises:
        SettingsRejected: No watched service runs on Kubernetes.
    """
    from agent.adapters.kubernetes.client import connect
    from agent.app import cluster_access
    from agent.app.kubernetes_environment import api_of, kubernetes_platform, watched_workloads

    open_client = open_client or connect
    watched = watched_workloads(settings, services)
    names = {s.name for s in watched}
    api = api_of(settings, open_client)
    key_of = partial(server_key_of, settings, services)
    platform = kubernetes_platform(settings, services, clock, key_of=key_of, open_client=open_client)
    return RuntimeEnvironment(
        platform_of=lambda name: platform if name in names else None,
        logs=cluster_access.kubernetes_logs(api, watched),
        token_review=cluster_access.token_review_of(cluster_access.own_api(settings, open_client)),
        clusters=cluster_access.watched_clusters(api, watched),
    )


def container_apps(
    settings: Settings, services: Services, clock: Clock, connect: Callable[[], Any] | None = None
) -> RuntimeEnvironment:
    """Return the environment of ``container_apps:SUBSCRIPTION``.

    Args:
        settings: The installation.
        services: What is watched; services of other platforms have no adapter here.
        clock: When something was measured.
        connect: Makes the official client; with this process's own identity when None.

    Raises:
        SettingsRejected: No watched service runs on Container Apps, or one names no resource group.
    """
    from agent.app.azure_environment import arm_api, azure_logs, container_apps_platform, watched_apps

    key_of = partial(server_key_of, settings, services)
    api, names = arm_api(settings, connect), {s.name for s in watched_apps(settings, services)}
    platform = container_apps_platform(settings, services, clock, key_of=key_of, api=api)
    return RuntimeEnvironment(
        platform_of=lambda name: platform if name in names else None, logs=azure_logs(settings, services, api)
    )


def _ec2(settings: Settings, services: Services, clock: Clock) -> RuntimeEnvironment:
    """Return the environment of ``ec2[:PROFILE]``; services of other platforms have no adapter here.

    Raises:
        SettingsRejected: No watched service has an instance there.
    """
    from agent.app.ec2_environment import open_ec2

    opened = open_ec2(settings, services, clock)
    return RuntimeEnvironment(
        platform_of=lambda name: opened.platform if name in opened.names else None, logs=opened.logs
    )


def _tpu_vm(settings: Settings, services: Services, clock: Clock) -> RuntimeEnvironment:
    from agent.app.tpu_environment import tpu_logs, tpu_platform, watched_nodes

    names = watched_nodes(settings, services)
    platform = tpu_platform(settings, services, clock, partial(server_key_of, settings, services))
    return RuntimeEnvironment(platform_of=lambda name: platform if name in names else None, logs=tpu_logs(settings))


def _host(settings: Settings, _: Services, clock: Clock) -> RuntimeEnvironment:
    require_linux("PLATFORM=host was not opened")
    from agent.app.host_environment import host_logs, host_platform

    platform = host_platform(settings, clock)
    return RuntimeEnvironment(
        platform_of=lambda name: platform if platform.knows(name) else None, logs=host_logs(platform)
    )


def _logs_only(*_: object) -> RuntimeEnvironment:
    """A replay of logs whose service we do not know: nothing to describe, nothing to change."""
    from agent.adapters.logs.file import FileLogs
    from agent.adapters.logs.replay_logs import ReplayLogs

    replay_logs = ReplayLogs()
    return RuntimeEnvironment(
        platform_of=lambda _: None, logs=FileLogs(replay_logs.recordings), replay_logs=replay_logs
    )


def _rehearsal(settings: Settings, services: Services, clock: Clock) -> RuntimeEnvironment:
    from agent.adapters.logs.file import FileLogs
    from agent.adapters.platform.rehearsal.platform import RehearsalPlatform
    from agent.adapters.platform.rehearsal.scenario import load_scenario

    folder = Path(settings.platform.removeprefix("rehearsal:"))
    scenarios = {s.name: load_scenario(folder / s.scenario) for s in services.services if s.scenario}
    if not scenarios:
        raise InputRejected(
            f"{str(folder)!r} is no rehearsal",
            why="no service of its services.toml names a scenario",
            hint="name a bundled incident, such as gemma4-31b-l4-oom: sre-agent up --example NAME",
        )
    factor = settings.compression if settings.compression > 1 else None
    compute = _by_fit(services) if settings.rehearse_by_fit else None
    path = settings.state / "rehearsal.sqlite"
    platform = RehearsalPlatform(path, scenarios, clock, compression=factor, compute=compute)
    own = max(s.compression for s in scenarios.values())
    return RuntimeEnvironment(
        platform_of=lambda name: platform if platform.takes_changes(name) else None,
        logs=FileLogs(platform.recordings),
        rehearsal=platform,
        wait_factor=factor or own,
    )


def _by_fit(services: Services) -> "Compute":
    from agent.adapters.platform.rehearsal.outcome import by_fit

    return by_fit(read_capacity(services))
