"""Woken by people: pages to read, behind IAP."""

import functions_framework
from flask import Request
from werkzeug.wrappers import Response

from agent.entrypoints.cold_start import loading

with loading():
    from agent.app import Role
    from agent.entrypoints.http_function import serve


@functions_framework.http
def console(request: Request) -> Response:
    """Show the console."""
    return serve(request, Role.CONSOLE)
