"""A request of `ingest`, `decide` or `console`: its body is read within limits, and a web application answers it.

Everybody may call them: `ingest` checks each sender's secret, `console` the IAP assertion, `decide` signatures.
"""

from __future__ import annotations

import io
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

from agent.app import Role
from agent.app.catalogues import project_of
from agent.core.intake.read import BODY_LIMIT as ALERT_LIMIT
from agent.entrypoints.function_app import app_of, settings, unavailable
from agent.entrypoints.http.application import HEADERS, make_http_app
from agent.entrypoints.http.request_body import BodyReader, BodyRefused
from agent.entrypoints.http.slack_request import BODY_LIMIT as PRESS_LIMIT
from agent.entrypoints.telemetry import traced
from agent.errors import SreError
from agent.ports.stage_context import Owner
from agent.structured_log import structlog

if TYPE_CHECKING:
    from flask import Flask, Request

    from agent.entrypoints.http.decide_service import DecideService

SIGNED = ("/slack/actions", "/webhooks/", "/pagerduty/events")  # in the paths of senders who sign and bring no token

log = structlog.get_logger(__name__)


def serve(request: Request, role: Role) -> Response:
    """Answer one request of a deployed function.

    Args:
        request: Of functions-framework.
        role: INGEST, DECIDE or CONSOLE.
    """
    with traced(dict(request.headers), project=project_of(settings())):
        try:
            web = _web(role, signed=any(part in request.path for part in SIGNED))
            body = _bodies().read(request, ALERT_LIMIT if role is Role.INGEST else PRESS_LIMIT)
        except BodyRefused as error:
            log.warning("request.refused", status=error.status, error=str(error))
            return Response(f"{error}\n", status=error.status, headers=HEADERS)
        except SreError as error:
            said, status = unavailable(error)
            return Response(said, status=status, headers=HEADERS)
        environ = request.environ | {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        try:
            return Response.from_app(web, environ)
        finally:
            app_of(role).tracer.flush()


@cache
def _web(role: Role, *, signed: bool) -> Flask:
    """Return what answers a role's requests; who presses a button in Slack waits for no code that reads tokens."""
    app = app_of(role)
    if role is Role.INGEST:
        from agent.entrypoints.http.ingest import alerts

        return make_http_app(alerts(app))
    if role is Role.DECIDE:
        from agent.entrypoints.http.decide import decisions

        service = _decide_service()
        if signed:
            return make_http_app(decisions(service))
        from agent.entrypoints.http.operators import operators

        return make_http_app(decisions(service), operators(service))
    from agent.entrypoints.console.app import make_app
    from agent.entrypoints.console.control_access import ControlThroughDecide
    from agent.entrypoints.console.forwarding import Forwarding
    from agent.entrypoints.console.pages.queue import queue_view

    settings, (context,) = app.settings, app.contexts.values()
    hands_on: dict[str, Any] = {}
    if not settings.embedded:  # in the cloud `decide` alone can sign
        to = Forwarding(settings)
        hands_on = {"decide": to.decide, "ask": to.ask, "withdraw": to.withdraw, "carry_out": to.carry_out}
        hands_on["control"] = ControlThroughDecide(settings)
    return make_app(context, settings=settings, queue=queue_view(app), **hands_on)


@cache
def _decide_service() -> DecideService:
    from agent.entrypoints.http.decide_service import open_decide_service

    app = app_of(Role.DECIDE)
    return open_decide_service(app.settings, app.contexts[Owner.DECIDE])


@cache
def _bodies() -> BodyReader:
    """Return what reads the bodies of this process; its threads are counted as functions-framework counts them."""
    threads = os.environ.get("THREADS", "")  # noqa: TID251 - the web server's setting, not one of ours
    return BodyReader(int(threads) if threads.isdigit() else (os.cpu_count() or 1) * 4)
