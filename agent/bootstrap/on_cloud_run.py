"""Services that run on Cloud Run: one project's, through its Admin API, with the logs of Cloud Logging."""

import re
import time
from urllib.parse import urlsplit

from agent.bootstrap.place import Place
from agent.core.services import Services
from agent.errors import SettingsRejected
from agent.ports.clock import Clock
from agent.settings import Settings


def cloud_run(settings: Settings, services: Services, clock: Clock) -> Place:
    """Return the place of ``cloud_run:PROJECT``; services of other projects and platforms have no adapter here.

    Raises:
        SettingsRejected: No watched service runs on Cloud Run in that project.
    """
    from agent.adapters.logs.cloud_logging import CloudLogs
    from agent.adapters.model.id_tokens import IdTokens, google_id_token
    from agent.adapters.platform.cloud_run import CloudRunPlatform
    from agent.adapters.platform.cloud_run_api import CloudRunApi, clients_at, default_clients
    from agent.adapters.platform.cloud_run_measure import Meter
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
            mend="name another project, or add the service to services.toml",
        )
    client = CompletionClient(
        id_token=IdTokens(google_id_token, lambda: clock.now().timestamp()).token,
        monotonic=time.monotonic,
        api_key=lambda service: key_of(settings, services, service),
    )
    meter = Meter(client, clock, key_name=lambda service: services.service(service).api_key)
    spare = {s.name: s.spare_accelerators for s in services.services}
    stand_in = settings.cloud_run_emulator
    api = CloudRunApi(default_clients if stand_in is None else lambda: clients_at(stand_in))
    platform = CloudRunPlatform(api, names, meter, spare=spare.get)
    logs = CloudLogs(project, emulator=settings.logging_emulator)
    return Place(platform_of=lambda name: platform if name in names else None, logs=logs)


def key_of(settings: Settings, services: Services, service: str) -> str | None:
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
