"""Woken by people: pages to read, behind IAP."""

import functions_framework
from flask import Request
from werkzeug.wrappers import Response

from agent.entrypoints.cli.loading import loading

with loading():
    from agent.entrypoints.functions import page


@functions_framework.http
def console(request: Request) -> Response:
    """Show the console."""
    return page(request)
