"""TPU VMs as the environment: which nodes are watched, how they are asked, and where their logs are."""

import time
from collections.abc import Callable
from datetime import datetime

from agent.adapters.logs.cloud_logging import CloudLogs, tpu_worker
from agent.adapters.platform.completion import CompletionClient
from agent.adapters.platform.reply_measurements import ReplyMeasurements
from agent.adapters.platform.tpu_vm.api import TpuApi, client_at, default_client
from agent.adapters.platform.tpu_vm.describe import NodeRef
from agent.adapters.platform.tpu_vm.measure import Meter
from agent.adapters.platform.tpu_vm.platform import TpuVmPlatform
from agent.adapters.platform.tpu_vm.read import missing_setup, read_node
from agent.core.service.services import Service, Services
from agent.errors import SettingsRejected
from agent.ports.clock import Clock
from agent.settings import Settings


def watched_nodes(settings: Settings, services: Services) -> dict[str, NodeRef]:
    """Return where the watched services of ``tpu_vm:PROJECT`` stand.

    Raises:
        SettingsRejected: There is none, or one names no zone.
    """
    project = settings.platform.removeprefix("tpu_vm:")
    found = [s for s in services.services if s.platform == "tpu_vm" and s.project in {project, None}]
    homeless = [s.name for s in found if s.location is None]
    if not found or homeless:
        why = (
            f"services.toml names no location (zone) of {homeless[0]!r}"
            if homeless
            else (f"services.toml watches no tpu_vm service of project {project!r}")
        )
        hint = "add to services.toml: platform = 'tpu_vm', project, location (the zone), queued_resource"
        raise SettingsRejected(f"PLATFORM {settings.platform!r} has nothing to work on", why=why, hint=hint)
    return {s.name: _ref(s, project) for s in found}


def tpu_platform(
    settings: Settings, services: Services, clock: Clock, key_of: Callable[[str], str | None]
) -> TpuVmPlatform:
    """Return the adapter of ``tpu_vm:PROJECT``.

    Raises:
        SettingsRejected: No watched service is there.
    """
    client = CompletionClient(id_token=None, monotonic=time.monotonic, api_key=key_of)
    measurements = ReplyMeasurements(clock, lambda service: services.service(service).api_key)
    return TpuVmPlatform(tpu_api(settings), watched_nodes(settings, services), Meter(client, measurements), clock)


def missing_setup_of(
    settings: Settings, services: Services, service: str, now: datetime
) -> tuple[tuple[str, str], ...]:
    """Return what a watched node still needs, and what to do about it.

    Raises:
        SreError: It could not be read.
    """
    ref = watched_nodes(settings, services)[service]
    return tuple(missing_setup(read_node(tpu_api(settings), ref, now)))


def tpu_api(settings: Settings) -> TpuApi:
    """Return the calls to Cloud TPU, or to the stand-in that the settings name."""
    stand_in = settings.tpu_emulator
    return TpuApi(default_client if stand_in is None else lambda: client_at(stand_in))


def tpu_logs(settings: Settings) -> CloudLogs:
    """Return the logs of TPU workers in Cloud Logging."""
    project = settings.platform.removeprefix("tpu_vm:")
    return CloudLogs(project, emulator=settings.logging_emulator, select=tpu_worker)


def _ref(service: Service, project: str) -> NodeRef:
    place = f"projects/{project}/locations/{service.location}"
    queued = f"{place}/queuedResources/{service.queued_resource}" if service.queued_resource else None
    return NodeRef(service=service.name, node=f"{place}/nodes/{service.name}", queued_resource=queued)
