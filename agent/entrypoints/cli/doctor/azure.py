"""What Azure lets us see: each watched container app is read once, as whoever runs the doctor; nothing is changed."""

from collections.abc import Iterator

from agent.core.service.services import Services
from agent.entrypoints.cli.doctor.finding import Finding, bad, good
from agent.errors import SreError
from agent.settings import Settings


def container_apps(settings: Settings, services: Services | None) -> Iterator[Finding]:
    """Look at each watched app: it is there, it is what services.toml says, and its logs can be found.

    Raises:
        SreError: No app is watched, or nothing leads to Azure.
    """
    if settings.platform.partition(":")[0] != "container_apps" or services is None:
        return
    from agent.app.azure_environment import app_ref, arm_api, watched_apps

    api = arm_api(settings)
    for service in watched_apps(settings, services):
        try:
            seen = api.seen(app_ref(settings, service))
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
