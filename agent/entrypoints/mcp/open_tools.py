"""The tools of this installation: catalogues, services and the operator's client, each opened when first needed."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from agent.app import google_capacity
from agent.app.catalogues import matcher, read_capacity, redact, titles
from agent.app.fit_answers import FitAnswers
from agent.app.model_profiles import mounts, reader
from agent.app.stores import machine_clock
from agent.core.plan.action import Lifecycle
from agent.core.planning.creation import creation
from agent.entrypoints.mcp.server import OperatorTools
from agent.entrypoints.mcp.sign_in import bearer, bearer_token
from agent.entrypoints.mcp.tools.capacity_tools import CapacityTools
from agent.entrypoints.mcp.tools.fit_tools import FitTools
from agent.entrypoints.mcp.tools.incident_tools import IncidentTools
from agent.entrypoints.mcp.tools.live_services import LiveServices, open_live_services
from agent.entrypoints.mcp.tools.model_tools import ModelTools
from agent.entrypoints.mcp.tools.proposal_tools import ProposalTools
from agent.entrypoints.mcp.tools.server_tools import ServerTools
from agent.entrypoints.mcp.tools.service_tools import ServiceTools
from agent.entrypoints.operator_client.protocol import AskedChange, OperatorClient, now
from agent.settings import Settings, read_settings

if TYPE_CHECKING:
    from agent.stages.preview_change import ChangePreview

T = TypeVar("T")


def open_tools() -> OperatorTools:
    """Return every tool, over the settings of this process; nothing is opened before a tool needs it."""
    settings = _once(read_settings)
    services = _once(lambda: open_live_services(settings()))
    client = _once(_client)
    return OperatorTools(
        fit=FitTools(FitAnswers.open),
        models=_model_tools(settings),
        services=ServiceTools(services, redact=redact),
        servers=ServerTools(services, redact=redact),
        capacity=CapacityTools(
            lambda: google_capacity.open_quotas(machine_clock()),
            google_capacity.open_queued_resources,
            project=lambda named: _project(services(), named),
            redact=redact,
        ),
        incidents=IncidentTools(
            client,
            matcher=matcher,
            titles=titles,
            entries=lambda query, hours: _entries(services(), query, hours),
            redact=redact,
        ),
        proposals=ProposalTools(
            client,
            preview=_preview,
            shape_of=lambda service: partial(read_capacity(services().services).usual_shape, service),
            create=lambda service: _creation(services(), service),
            resumes_with=lambda service: _resumes_with(services(), service),
            bearer=bearer,
            decide_url=lambda: settings().decide_url or settings().public_url,
            redact=redact,
            local=lambda: settings().embedded and settings().decide_url is None,
        ),
        redact=redact,
    )


def _client() -> OperatorClient:
    from agent.entrypoints.operator_client.local import open_operator_client

    return open_operator_client(bearer_token)


def _preview(asked: AskedChange) -> "ChangePreview":
    from agent.entrypoints.operator_client.local import preview_with_own_credentials

    return preview_with_own_credentials(asked)


def _model_tools(settings: Callable[[], Settings]) -> ModelTools:
    return ModelTools(
        FitAnswers.open,
        settings=settings,
        folders=google_capacity.folders_of,
        mounted=lambda path: mounts(settings())(path),  # noqa: PLW0108 - the settings are read when it is asked
        read=lambda *checkpoint: reader(settings())(*checkpoint),  # noqa: PLW0108
        redact=redact,
    )


def _once(make: Callable[[], T]) -> Callable[[], T]:
    """Return what makes a thing at the first call and keeps it; calls on many threads make one."""
    made, lock = cache(make), threading.Lock()

    def get() -> T:
        with lock:
            return made()

    return get


def _project(services: LiveServices, named: str | None) -> str:
    watched = [service.project for service in services.services.services if service.project]
    return google_capacity.named_project(services.settings, named, watched)


def _entries(services: LiveServices, query: str, hours: float) -> Iterator[dict[str, Any]]:
    from agent.app.runtime_environment import cloud_log_entries

    return cloud_log_entries(services.settings, query, after=now() - timedelta(hours=hours))


def _creation(services: LiveServices, service: str) -> Lifecycle:
    return creation(services.services.service(service), services.fits)


def _resumes_with(services: LiveServices, service: str) -> str:
    live = services.live(service)
    return "{}:{}".format(*live.resumes_with) if live.resumes_with is not None else ""
