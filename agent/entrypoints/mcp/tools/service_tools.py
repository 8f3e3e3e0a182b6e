"""Tools about the watched services as they are now: what runs, what it prints, whether it answers."""

import json
import shlex
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from agent.entrypoints.mcp.tools.live_services import LiveServices
from agent.entrypoints.mcp.tools.result import PAGE_BYTES, Result, Untrusted, one_line, page_of, untrusted

ServiceName = Annotated[str, Field(max_length=63, description="as list_services gives it")]
Offset = Annotated[int, Field(ge=0, description="next_offset of the page before")]

_PART = PAGE_BYTES // 3  # of a result that holds several texts


class ServiceRow(Result):
    """A watched service, as services.toml declares it."""

    name: str
    platform: str
    model: str
    accelerator: str
    accelerator_count: int
    owner: str
    needs: dict[str, Any]


class ServiceList(Result):
    """A page of watched services."""

    services: list[ServiceRow]
    next_offset: int | None


class ServiceStatus(Result):
    """A service as its platform shows it now; ``ready`` null means that it is not known."""

    name: str
    platform: str
    ready: bool | None
    revision: str | None
    serving_revision: str | None
    reconciling: bool
    url: str
    message: Untrusted
    flags: Untrusted
    image: str
    accelerator: str | None
    min_instances: int
    max_instances: int | None
    concurrency: int | None
    memory_mib: int | None


class DeploymentConfig(Result):
    """What runs, exactly as the platform writes it, and what the memory rules say of it.

    Attributes:
        manifest: The platform's own form of it as JSON: a service of Cloud Run, a pod template with its strategy.
        command: The server's command line.
        fits: Null where it cannot be told.
    """

    name: str
    platform: str
    manifest: Untrusted
    command: str
    fits: bool | None
    reason: str
    sentence: str


class ServiceTools:
    """The tools about services.

    Args:
        open_services: Opens the watched services; once, at the first question.
        redact: Takes secrets out of a text.
    """

    def __init__(self, open_services: Callable[[], LiveServices], *, redact: Callable[[str], str]) -> None:
        self._open, self._redact = open_services, redact

    def list_services(self, offset: Offset = 0) -> ServiceList:
        """List the watched services as services.toml declares them; nothing is asked of a platform."""
        rows = [
            ServiceRow(
                name=s.name,
                platform=s.platform,
                model=s.model,
                accelerator=s.accelerator,
                accelerator_count=s.accelerator_count,
                owner=s.owner,
                needs=s.needs.model_dump(exclude_none=True),
            )
            for s in self._open().services.services
        ]
        page, following = page_of(rows, offset=offset)
        return ServiceList(services=page, next_offset=following)

    def service_status(self, service: ServiceName) -> ServiceStatus:
        """Show a service as its platform shows it now: ready or why not, revision, flags, scaling. Wakes nothing."""
        live = self._open().live(service)
        config = live.config
        return ServiceStatus(
            name=live.service,
            platform=live.platform,
            ready=live.ready,
            revision=live.latest_created_revision,
            serving_revision=live.served_by_older or live.latest_ready_revision,
            reconciling=live.reconciling,
            url=live.url,
            message=untrusted(live.message.splitlines(), redact=self._redact, most_bytes=_PART),
            flags=untrusted(config.args, redact=self._redact, most_bytes=_PART),
            image=config.image,
            accelerator=config.accelerator,
            min_instances=config.min_instances,
            max_instances=config.max_instances,
            concurrency=config.concurrency,
            memory_mib=config.memory_mib,
        )

    def deployment_config(self, service: ServiceName, offset: Offset = 0) -> DeploymentConfig:
        """Return the exact manifest of a service and its command line, checked against the memory rules."""
        live = self._open().live(service)
        fit = self._open().fits.assess(live.service, live.config)
        template = self._without_secrets(json.loads(live.template))  # not strict: of our own platform adapter
        return DeploymentConfig(
            name=live.service,
            platform=live.platform,
            manifest=untrusted(
                json.dumps(template, indent=1).split("\n"), redact=self._redact, offset=offset, most_bytes=2 * _PART
            ),
            command=one_line(shlex.join((*live.config.command, *live.config.args)), redact=self._redact, most=1_000),
            fits=fit.fits,
            reason=fit.reason,
            sentence=one_line(fit.sentence, redact=self._redact),
        )

    def read_logs(self, service: ServiceName, offset: Offset = 0) -> Untrusted:
        """Read the log of the newest instance of a service, at most 2,000 lines, page by page."""
        lines = [f"{line.at.isoformat()} {line.text}" for line in self._open().log(service).lines]
        return untrusted(lines, redact=self._redact, offset=offset)

    def _without_secrets(self, part: Any) -> Any:
        """Redact the values of variables beside their names, which tell what is a password."""
        if isinstance(part, list):
            return [self._without_secrets(each) for each in part]
        if not isinstance(part, dict):
            return part
        name, value = part.get("name"), part.get("value")
        if isinstance(name, str) and isinstance(value, str):
            clean = self._redact(f"{name}={value}")
            return part | {"value": clean.removeprefix(f"{name}=")}
        return {key: self._without_secrets(each) for key, each in part.items()}
