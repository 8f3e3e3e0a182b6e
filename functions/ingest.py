"""Woken by senders that post and cannot publish: an authenticated alert becomes a message."""

import functions_framework
from flask import Request
from werkzeug.wrappers import Response

from agent.entrypoints.cold_start import loading

with loading():
    from agent.app import Role
    from agent.entrypoints.http_function import serve


@functions_framework.http
def ingest(request: Request) -> Response:
    """Publish an alert of a sender that we know."""
    return serve(request, Role.INGEST)
