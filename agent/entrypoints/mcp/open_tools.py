"""The tools of this installation: catalogues, services and the operator's client, each opened when first needed.

What a tool works with is imported at its first call: a client waits for the list of tools (promise P15).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

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
from agent.entrypoints.mcp.tools.sweep_tools import SweepTools

if TYPE_CHECKING:
    from pathlib import Path

    from agent.app.fit_answers import FitAnswers
    from agent.app.sweep_proposal import ProposedSweep, SweepWish
    from agent.core.change.asked_settings import ShapeOf, TypeOf
    from agent.core.plan.action import Lifecycle
    from agent.entrypoints.operator_client.protocol import OperatorChange, OperatorClient
    from agent.failures.match.matcher import Matcher
    from agent.ports.queued_resources import QueuedResources
    from agent.ports.quotas import Quotas
    from agent.settings import Settings
    from agent.stages.preview_change import ChangePreview

T = TypeVar("T")


def open_tools() -> OperatorTools:
    """Return every tool, over the settings of this process; nothing is opened before a tool needs it."""
    settings = _once(_settings)
    services = _once(lambda: open_live_services(settings()))
    client = _once(_client)
    return OperatorTools(
        fit=FitTools(_fit_answers),
        models=_model_tools(settings),
        services=ServiceTools(services, redact=_redact),
        servers=ServerTools(services, redact=_redact),
        capacity=CapacityTools(
            _quotas, _queued_resources, project=lambda named: _project(services(), named), redact=_redact
        ),
        incidents=IncidentTools(
            client,
            matcher=_matcher,
            titles=_titles,
            entries=lambda query, hours: _entries(services(), query, hours),
            redact=_redact,
        ),
        sweeps=SweepTools(
            lambda: _sweep_folders(settings()),
            propose=lambda: _propose_sweep(settings()),
            bearer=bearer,
            redact=_redact,
        ),
        proposals=ProposalTools(
            client,
            preview=_preview,
            shape_of=lambda service: _shape_of(services(), service),
            type_of=lambda service: _type_of(services(), service),
            create=lambda service: _creation(services(), service),
            resumes_with=lambda service: _resumes_with(services(), service),
            bearer=bearer,
            decide_url=lambda: settings().decide_url or settings().public_url,
            redact=_redact,
            local=lambda: settings().embedded and settings().decide_url is None,
        ),
        redact=_redact,
    )


def _settings() -> "Settings":
    from agent.settings import read_settings

    return read_settings()


def _fit_answers() -> "FitAnswers":
    from agent.app.fit_answers import FitAnswers

    return FitAnswers.open(folders=False)  # a client reads no files of this machine


def _redact(text: str) -> str:
    from agent.app.redaction import redact

    return redact(text)


def _matcher() -> "Matcher":
    from agent.app.catalogues import matcher

    return matcher()


def _titles() -> dict[str, str]:
    from agent.app.catalogues import titles

    return titles()


def _quotas() -> "Quotas":
    from agent.app.google_capacity import open_quotas
    from agent.app.stores import machine_clock

    return open_quotas(machine_clock())


def _queued_resources() -> "QueuedResources":
    from agent.app.google_capacity import open_queued_resources

    return open_queued_resources()


def _sweep_folders(settings: "Settings") -> "dict[str, Path]":
    from agent.app.sweep_reports import sweep_folders

    return sweep_folders(settings)


def _propose_sweep(settings: "Settings") -> "Callable[[SweepWish], ProposedSweep] | None":
    from agent.app import build_app
    from agent.app.sweep_proposal import propose_sweep
    from agent.entrypoints.telemetry import configure_log

    if not settings.embedded or settings.decide_url is not None:
        return None
    configure_log(as_json=True, quiet=True)
    return partial(propose_sweep, build_app(settings))


def _client() -> "OperatorClient":
    from agent.entrypoints.operator_client.local import open_operator_client

    return open_operator_client(bearer_token)


def _preview(asked: "OperatorChange") -> "ChangePreview":
    from agent.entrypoints.operator_client.local import preview_with_own_credentials

    return preview_with_own_credentials(asked)


def _model_tools(settings: "Callable[[], Settings]") -> ModelTools:
    def folders(bucket: str, folder: str) -> Sequence[str]:
        from agent.app.google_capacity import folders_of

        return folders_of(bucket, folder)

    def mounted(path: str) -> str | None:
        from agent.app.model_profiles import mounts

        return mounts(settings())(path)

    def read(*checkpoint: Any) -> Any:
        from agent.app.model_profiles import reader

        return reader(settings())(*checkpoint)

    return ModelTools(_fit_answers, settings=settings, folders=folders, mounted=mounted, read=read, redact=_redact)


def _shape_of(services: LiveServices, service: str) -> "ShapeOf":
    from agent.app.catalogues import read_capacity

    return partial(read_capacity(services.services).usual_shape, service)


def _type_of(services: LiveServices, service: str) -> "TypeOf":
    from agent.app.catalogues import read_capacity

    return partial(read_capacity(services.services).instance_type, service)


def _once(make: Callable[[], T]) -> Callable[[], T]:
    """Return what makes a thing at the first call and keeps it; calls on many threads make one."""
    made, lock = cache(make), threading.Lock()

    def get() -> T:
        with lock:
            return made()

    return get


def _project(services: LiveServices, named: str | None) -> str:
    from agent.app.google_capacity import named_project

    watched = [service.project for service in services.services.services if service.project]
    return named_project(services.settings, named, watched)


def _entries(services: LiveServices, query: str, hours: float) -> Iterator[dict[str, Any]]:
    from agent.app.runtime_environment import cloud_log_entries
    from agent.entrypoints.operator_client.protocol import now

    return cloud_log_entries(services.settings, query, after=now() - timedelta(hours=hours))


def _creation(services: LiveServices, service: str) -> "Lifecycle":
    from agent.core.planning.creation import creation

    return creation(services.services.service(service), services.fits)


def _resumes_with(services: LiveServices, service: str) -> str:
    live = services.live(service)
    return "{}:{}".format(*live.resumes_with) if live.resumes_with is not None else ""
