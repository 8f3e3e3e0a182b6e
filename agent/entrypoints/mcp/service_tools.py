"""Tools about the watched services as they are now: what runs, what it prints, whether it answers."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from agent.app import App
from agent.core.service.serving import Live
from agent.entrypoints.mcp.result import Result, Untrusted, untrusted
from agent.errors import InputRejected

ServiceName = Annotated[str, Field(max_length=63, description="as list_services gives it")]
Offset = Annotated[int, Field(ge=0, description="next_offset of the page before")]


class ServiceRow(Result):
    """A watched service, as services.toml declares it."""

    name: str
    platform: str
    model: str
    accelerator: str
    accelerator_count: int
    owner: str
    needs: dict[str, Any]


class ServiceStatus(Result):
    """A service as its platform shows it now; ``ready`` null means that it is not known."""

    name: str
    platform: str
    ready: bool | None
    revision: str | None
    serving_revision: str | None
    reconciling: bool
    message: Untrusted
    flags: list[str]
    image: str
    accelerator: str | None
    min_instances: int
    max_instances: int | None
    concurrency: int | None
    memory_mib: int | None


class DeploymentConfig(Result):
    """The exact configuration that runs, and what the memory rules say of it."""

    name: str
    config: dict[str, Any]
    fits: bool | None
    reason: str
    sentence: str


class HealthShown(Result):
    """One bounded completion and its figures; ``good`` null means not measured."""

    service: str
    revision: str | None
    measurements: list[dict[str, Any]]
    note: str


class ServiceTools:
    """The tools about services.

    Args:
        app: What reads services and logs, with the credentials of whoever runs this; built once, at the first question.
        redact: Takes secrets out of a text.
    """

    def __init__(self, app: Callable[[], App], *, redact: Callable[[str], str]) -> None:
        self._app, self._redact = app, redact

    def list_services(self) -> list[ServiceRow]:
        """List the watched services as services.toml declares them; nothing is asked of a platform."""
        return [
            ServiceRow(
                name=s.name,
                platform=s.platform,
                model=s.model,
                accelerator=s.accelerator,
                accelerator_count=s.accelerator_count,
                owner=s.owner,
                needs=s.needs.model_dump(exclude_none=True),
            )
            for s in self._app().services.services
        ]

    def service_status(self, service: ServiceName) -> ServiceStatus:
        """Show a service as its platform shows it now: ready or why not, revision, flags, scaling. Wakes nothing."""
        live = self._live(service)
        config = live.config
        return ServiceStatus(
            name=live.service,
            platform=live.platform,
            ready=live.ready,
            revision=live.latest_created_revision,
            serving_revision=live.served_by_older or live.latest_ready_revision,
            reconciling=live.reconciling,
            message=untrusted(live.message.splitlines(), redact=self._redact),
            flags=[self._redact(arg) for arg in config.args],
            image=config.image,
            accelerator=config.accelerator,
            min_instances=config.min_instances,
            max_instances=config.max_instances,
            concurrency=config.concurrency,
            memory_mib=config.memory_mib,
        )

    def deployment_config(self, service: ServiceName) -> DeploymentConfig:
        """Return the exact configuration of a service, checked against the memory rules."""
        live = self._live(service)
        fit = self._app().rules.fits.assess(live.service, live.config)
        return DeploymentConfig(
            name=live.service,
            config=self._shown_config(live),
            fits=fit.fits,
            reason=fit.reason,
            sentence=fit.sentence,
        )

    def read_logs(self, service: ServiceName, offset: Offset = 0) -> Untrusted:
        """Read the log of the newest instance of a service, at most 2,000 lines, page by page."""
        app = self._app()
        name = app.services.service(service).name
        found = app.environment.logs.instance_log(name, revision=None, instance=None, until=app.clock.now())
        if found is None:
            raise InputRejected(
                f"no log of {name!r} was read",
                why="no instance of it has a log that can be reached from here",
                hint="see where its logs go: service_status",
            )
        lines = [f"{line.at.isoformat()} {line.text}" for line in found.lines]
        return untrusted(lines, redact=self._redact, offset=offset)

    def verify_model_health(self, service: ServiceName) -> HealthShown:
        """Send one bounded completion to a service that runs, and read its token counter and speed."""
        live = self._live(service)
        if live.ready is not True or (live.config.max_instances == 0):
            raise InputRejected(
                f"nothing was sent to {service!r}",
                why="no instance of it is known to serve",
                hint="a request could wake it; propose a start with propose_lifecycle",
            )
        revision = live.latest_ready_revision or live.latest_created_revision
        platform = self._app().environment.platform_of(live.service)
        measured = platform.measure(live.service, revision) if platform is not None and revision else ()
        rows = [m.model_dump(mode="json") | {"says": self._redact(m.says)[:500]} for m in measured]
        note = "one completion of at most a few tokens; speed is of one request"
        return HealthShown(service=live.service, revision=revision, measurements=rows, note=note)

    def _live(self, service: str) -> Live:
        app = self._app()
        watched = app.services.service(service)
        platform = app.environment.platform_of(watched.name)
        if platform is None:
            raise InputRejected(
                f"service {service!r} cannot be seen from here",
                why=f"PLATFORM is {app.settings.platform!r}, and the service runs on {watched.platform!r}",
                hint="set PLATFORM to where it runs, with your own credentials",
            )
        return platform.describe(watched.name)

    def _shown_config(self, live: Live) -> dict[str, Any]:
        """The configuration without secrets: a value of a variable is shown only after redaction."""
        config = live.config.model_dump(mode="json", exclude_none=True)
        config["args"] = [self._redact(arg) for arg in live.config.args]
        config["env"] = [
            {"name": v.name, "secret": v.secret} if v.secret else {"name": v.name, "value": self._redact(v.value or "")}
            for v in live.config.env
        ]
        return config
