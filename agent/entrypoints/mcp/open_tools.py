"""The tools of this installation: catalogues, services and the operator's client, each opened when first needed."""

from functools import cache, partial

from agent.app import App, build_app
from agent.app.catalogues import matcher, read_capacity, redact, titles
from agent.app.fit_answers import FitAnswers
from agent.entrypoints.mcp.fit_tools import FitTools
from agent.entrypoints.mcp.incident_tools import IncidentTools
from agent.entrypoints.mcp.proposal_tools import ProposalTools
from agent.entrypoints.mcp.server import OperatorTools
from agent.entrypoints.mcp.service_tools import ServiceTools
from agent.entrypoints.operator_client.local import open_operator_client, preview_with_own_credentials
from agent.settings import read_settings


def open_tools() -> OperatorTools:
    """Return every tool, over the settings of this process; nothing is opened before a tool needs it."""
    settings = cache(read_settings)

    @cache
    def app() -> App:
        return build_app(settings())

    def usual_shape(service: str, accelerator: str) -> tuple[float, int] | None:
        return read_capacity(app().services).usual_shape(service, accelerator)

    client = cache(open_operator_client)
    return OperatorTools(
        fit=FitTools(FitAnswers.open),
        incidents=IncidentTools(client, matcher=matcher, titles=titles, redact=redact),
        services=ServiceTools(app, redact=redact),
        proposals=ProposalTools(
            client,
            preview=preview_with_own_credentials,
            shape_of=lambda service: partial(usual_shape, service),
            decide_url=lambda: settings().decide_url or settings().public_url,
            redact=redact,
            local=lambda: settings().embedded and settings().decide_url is None,
        ),
        redact=redact,
    )
