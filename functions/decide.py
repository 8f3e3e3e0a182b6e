"""Woken by Slack and by webhooks, open to everybody: a signed answer to a plan becomes one recorded decision."""

import functions_framework
from flask import Request

from agent.entrypoints.cli.loading import loading

with loading():
    from agent.entrypoints import functions


@functions_framework.http
def decide(request: Request) -> tuple[bytes, int, dict[str, str]]:
    """Record an answer that is signed."""
    return functions.decide(request)
