"""Woken by Slack and by webhooks, open to everybody: a signed answer to a plan becomes one recorded decision."""

import functions_framework
from flask import Request
from werkzeug.wrappers import Response

from agent.entrypoints.cold_start import loading

with loading():
    from agent.app import Role
    from agent.entrypoints.http_function import serve


@functions_framework.http
def decide(request: Request) -> Response:
    """Record an answer that is signed."""
    return serve(request, Role.DECIDE)
