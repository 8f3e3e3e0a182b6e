"""Woken by the scheduler, once a minute: watches, verifies, expires, orders, and changes nothing itself."""

import functions_framework
from flask import Request

from agent.entrypoints.cold_start import loading

with loading():
    from agent.entrypoints.function_app import StatusReply, warm
    from agent.entrypoints.pubsub.push import tick

    warm()


@functions_framework.http
def on_tick(request: Request) -> StatusReply:
    """Run what time has made due."""
    return tick(request)
