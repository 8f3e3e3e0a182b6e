"""Woken by the log sink: an entry becomes a signal of an incident."""

import functions_framework
from flask import Request

from agent.entrypoints.cli.loading import loading

with loading():
    from agent.entrypoints.functions import Answer, push, warm
    from agent.ports.bus import Topic
    from agent.ports.stage_context import Owner

    warm()


@functions_framework.http
def on_log_event(request: Request) -> Answer:
    """Take a log entry in."""
    return push(request, Owner.INTAKE, Topic.LOG_EVENTS)
