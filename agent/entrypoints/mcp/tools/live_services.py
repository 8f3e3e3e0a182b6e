"""The watched services with the way to each: described, logged and asked with the credentials of whoever runs this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.app.runtime_environment import RuntimeEnvironment
    from agent.core.plan.capacity import Capacity
    from agent.core.service.services import Services
    from agent.core.service.serving import Live
    from agent.ports.clock import Clock
    from agent.ports.logs import InstanceLog
    from agent.ports.platform import Platform
    from agent.settings import Settings


@dataclass(frozen=True, kw_only=True)
class LiveServices:
    """What is watched, and where it runs.

    Attributes:
        settings: Of this process.
        services: What is watched.
        environment: Where services run and logs are read; None where nothing can be seen from here.
        fits: The arithmetic.
        clock: Until when a log is read.
    """

    settings: Settings
    services: Services
    environment: RuntimeEnvironment | None
    fits: Capacity
    clock: Clock

    @property
    def simulated(self) -> bool:
        """Whether services are a rehearsal's."""
        return self.environment is not None and self.environment.rehearsal is not None

    def live(self, service: str) -> Live:
        """Return a watched service as its platform shows it now.

        Raises:
            SreError: It is not watched, cannot be seen from here, or the platform does not answer.
        """
        return self.platform_of(service).describe(service)

    def platform_of(self, service: str) -> Platform:
        """Return the platform of a watched service.

        Raises:
            InputRejected: It is not watched, or cannot be seen from here.
        """
        watched = self.services.service(service)
        platform = self.environment.platform_of(watched.name) if self.environment is not None else None
        if platform is None:
            raise InputRejected(
                f"service {service!r} cannot be seen from here",
                why=f"PLATFORM is {self.settings.platform!r}, and the service runs on {watched.platform!r}",
                hint="set PLATFORM to where it runs, with your own credentials",
            )
        return platform

    def log(self, service: str) -> InstanceLog:
        """Return the log of the newest instance of a service.

        Raises:
            SreError: It is not watched, or has no log that can be reached from here.
        """
        name = self.services.service(service).name
        found = None
        if self.environment is not None:
            found = self.environment.logs.instance_log(name, revision=None, instance=None, until=self.clock.now())
        if found is None:
            raise InputRejected(
                f"no log of {name!r} was read",
                why="no instance of it has a log that can be reached from here",
                hint="set PLATFORM to where it runs, with your own credentials; see service_status",
            )
        return found


def open_live_services(settings: Settings) -> LiveServices:
    """Return the services of the settings. Beside an installation in the cloud no store of it is opened.

    Raises:
        SreError: The settings do not make them.
    """
    from agent.app import build_app
    from agent.app.catalogues import read_capacity, read_services
    from agent.app.runtime_environment import open_environment
    from agent.app.stores import machine_clock
    from agent.entrypoints.telemetry import configure_log

    configure_log(as_json=True, quiet=True)
    if settings.decide_url is None and settings.embedded:
        app = build_app(settings)
        return LiveServices(
            settings=settings,
            services=app.services,
            environment=app.environment,
            fits=app.rules.fits,
            clock=app.clock,
        )
    services, clock = read_services(settings), machine_clock()
    blind = settings.platform.startswith("rehearsal:") or settings.platform == "none"
    environment = None if blind else open_environment(settings, services, clock)
    fits = read_capacity(services, settings)
    return LiveServices(settings=settings, services=services, environment=environment, fits=fits, clock=clock)
