"""What Azure lets us see: each watched container app is read once, as whoever runs the doctor; nothing is changed."""

from collections.abc import Callable, Iterator
from functools import partial

from agent.core.service.services import Services
from agent.entrypoints.cli.doctor.finding import Finding, bad, good, off
from agent.errors import SreError
from agent.settings import Settings

STREAM = "container_apps_log_stream"


def container_apps(settings: Settings, services: Services | None) -> Iterator[Finding]:
    """Look at each watched app: it is there, it is what services.toml says, and its logs can be found.

    Raises:
        SreError: No app is watched, or nothing leads to Azure.
    """
    if settings.platform.partition(":")[0] != "container_apps" or services is None:
        return
    from agent.app.azure_environment import app_ref, arm_api, readable_streams, watched_apps

    api = arm_api(settings)
    if not settings.container_apps_log_stream:
        yield off(STREAM, "a server that fails before Log Analytics has its first row is diagnosed by signals alone")
    for service in watched_apps(settings, services):
        ref = app_ref(settings, service)
        try:
            seen = api.seen(ref)
        except SreError as error:
            yield bad(f"container_apps:{service.name}", error.cause, error.hint)
            continue
        profile = seen.properties.get("workloadProfileName")
        has, count = seen.environment.accelerator(profile, service.accelerator)
        if (has, count) != (service.accelerator, service.accelerator_count):
            says = f"its workload profile {profile!r} has {count} x {has}, services.toml says otherwise"
            yield bad(f"container_apps:{service.name}", says, "correct accelerator in services.toml")
        elif seen.environment.workspace is None:
            says = "its environment sends no logs to Log Analytics, so only signals tell what it printed"
            yield bad(f"container_apps:{service.name}", says, "az containerapp env update --logs-destination")
        else:
            yield good(f"container_apps:{service.name}", f"{seen.newest}, on {profile!r} ({has})")
        if settings.container_apps_log_stream:
            yield _stream(service.name, seen.newest, partial(readable_streams, api, ref, seen.newest))


def _stream(name: str, newest: str, count: Callable[[], int]) -> Finding:
    """Say whether the log stream may be read: the replicas and the token that it needs."""
    check = f"{STREAM}:{name}"
    try:
        replicas = count()
    except SreError as error:
        return bad(check, error.cause, f"{error.hint}; or leave CONTAINER_APPS_LOG_STREAM off (docs/container-apps.md)")
    return good(check, f"on: {replicas} replicas of {newest}, and a token for their streams; it could open a shell too")
