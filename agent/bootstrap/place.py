"""Where services run and where their logs are read: a rehearsal, the cloud, or nowhere that we know."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.bootstrap.known import read_services, service_fits
from agent.core.services import Services
from agent.errors import InputRejected, SettingsRejected
from agent.ports.clock import Clock
from agent.ports.logs import Logs
from agent.ports.platform import Platform
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.logs.kept import KeptLogs
    from agent.adapters.platform.rehearsal import RehearsalPlatform
    from agent.adapters.platform.rehearsal_fate import Compute


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where services run, where their logs are read, and how fast time goes there."""

    platform_of: Callable[[str], Platform | None]
    logs: Logs
    rehearsal: "RehearsalPlatform | None" = None
    kept: "KeptLogs | None" = None
    factor: float = 1.0


def place_of(settings: Settings, services: Services, clock: Clock) -> Place:
    """Return the place that the settings name.

    Raises:
        SettingsRejected: There is no adapter for it.
        InputRejected: The rehearsal's folder holds no scenario.
    """
    if settings.platform.startswith("rehearsal:"):
        return _rehearsal(settings, services, clock)
    if settings.platform.startswith("cloud_run:"):
        return _cloud_run(settings, services, clock)
    if settings.platform == "host":
        from agent.bootstrap.on_host import host

        return host(settings, clock)
    if settings.platform == "none":
        return _logs_only()
    raise SettingsRejected(
        f"PLATFORM {settings.platform!r} is not available here",
        why="this installation has no adapter for it",
        mend="use rehearsal:<folder>, cloud_run:<project> or host",
    )


def cloud_log_entries(settings: Settings, log_filter: str, *, after: datetime) -> Iterator[dict[str, Any]]:
    """Yield entries of Cloud Logging for a replay, oldest first.

    Raises:
        InputRejected: The filter cannot be read, or no project is known.
        DependencyFailed: Cloud Logging did not answer.
    """
    from agent.adapters.logs.cloud_logging import CloudLogs

    words = [word.partition(":") for word in (settings.store, settings.bus, settings.platform)]
    projects = [name for kind, _, name in words if kind in {"firestore", "pubsub", "cloud_run"}]
    projects += [s.project for s in read_services(settings).services if s.project] if settings.services else []
    since = after.isoformat().replace("+00:00", "Z")
    logs = CloudLogs(projects[0] if projects else None, emulator=settings.logging_emulator)
    return logs.entries(f'timestamp>="{since}"\n({log_filter})', limit=100_000)


def _cloud_run(settings: Settings, services: Services, clock: Clock) -> Place:
    from agent.bootstrap.on_cloud_run import cloud_run

    return cloud_run(settings, services, clock)


def _logs_only() -> Place:
    """A replay of logs whose service we do not know: nothing to describe, nothing to change."""
    from agent.adapters.logs.file import FileLogs
    from agent.adapters.logs.kept import KeptLogs

    kept = KeptLogs()
    return Place(platform_of=lambda _: None, logs=FileLogs(kept.recordings), kept=kept)


def _rehearsal(settings: Settings, services: Services, clock: Clock) -> Place:
    from agent.adapters.logs.file import FileLogs
    from agent.adapters.platform.rehearsal import RehearsalPlatform
    from agent.adapters.platform.rehearsal_scenario import load_scenario

    folder = Path(settings.platform.removeprefix("rehearsal:"))
    scenarios = {s.name: load_scenario(folder / s.scenario) for s in services.services if s.scenario}
    if not scenarios:
        raise InputRejected(
            f"{str(folder)!r} is no rehearsal",
            why="no service of its services.toml names a scenario",
            mend="take a folder of examples/",
        )
    factor = settings.compression if settings.compression > 1 else None
    compute = _by_fit(services) if settings.rehearse_by_fit else None
    path = settings.state / "rehearsal.sqlite"
    platform = RehearsalPlatform(path, scenarios, clock, compression=factor, compute=compute)
    own = max(s.compression for s in scenarios.values())
    return Place(
        platform_of=lambda name: platform if platform.takes_changes(name) else None,
        logs=FileLogs(platform.recordings),
        rehearsal=platform,
        factor=factor or own,
    )


def _by_fit(services: Services) -> "Compute":
    from agent.adapters.platform.rehearsal_compute import by_fit

    return by_fit(service_fits(services))
