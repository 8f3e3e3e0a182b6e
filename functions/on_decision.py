"""Woken by decisions and orders: the one function that changes a service."""

import functions_framework
from flask import Request

from agent.entrypoints.cold_start import loading

with loading():
    from agent.entrypoints.function_app import StatusReply, warm
    from agent.entrypoints.pubsub.push import push
    from agent.ports.bus import Topic

    warm()


@functions_framework.http
def on_decision(request: Request) -> StatusReply:
    """Start, shift or undo the change that a signed decision covers."""
    return push(request, Topic.DECISIONS)
