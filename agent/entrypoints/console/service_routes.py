"""The pages of the watched services: how each stands, what it runs, and what differs from what was declared."""

from flask import Flask, Response

from agent.core.service.services import Service
from agent.core.service.serving import ServingConfig
from agent.entrypoints.console.page_context import PageContext, page, who_asks
from agent.ports.stage_context import Owner, StageContext
from agent.ports.store import Query
from agent.presentation.drift_text import drift_line
from agent.presentation.service_view import SHOWN_INCIDENTS, ServiceView
from agent.stages.shared.service_view import view_service


def service_view(context: StageContext, service: Service) -> ServiceView:
    """Return what is known of a service; described only where this process may."""
    records = context.service_records
    describes = context.owner is Owner.DECIDE  # in the cloud the console reads databases and nothing else
    return view_service(
        service,
        context.platform_of(service.name) if describes else None,
        record=records.service_record(service.name) if records is not None else None,
        incidents=context.store.incidents(Query(service=service.name, limit=SHOWN_INCIDENTS)),
        redact=context.rules.redact,
        price=context.rules.fits.cost_usd_per_h if describes else _unknown,
    )


def _unknown(_service: str, _config: ServingConfig) -> None:
    """Who does not describe a service knows no price of it."""


def add_service_list(app: Flask, console: PageContext) -> None:
    """Add the list of services."""

    @app.get("/services")
    def services() -> Response:
        person, now = who_asks(console), console.context.clock.now()
        views = [service_view(console.context, service) for service in console.context.rules.services.services]
        return page(console, "services.html", person, now, views=views, drift_line=drift_line)
