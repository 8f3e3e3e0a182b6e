"""Woken by decisions and orders: the one function that changes a service."""

import functions_framework
from flask import Request

from agent.entrypoints.cli.loading import loading

with loading():
    from agent.entrypoints.functions import Answer, push, warm
    from agent.ports.bus import Topic
    from agent.ports.stage_context import Owner

    warm()


@functions_framework.http
def on_decision(request: Request) -> Answer:
    """Start, shift or undo the change that a signed decision covers."""
    return push(request, Owner.DECISION, Topic.DECISIONS)
