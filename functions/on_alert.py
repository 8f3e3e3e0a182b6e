"""Woken by Cloud Monitoring and by what ingest publishes: an alert becomes a signal of an incident."""

import functions_framework
from flask import Request

from agent.entrypoints.cli.loading import loading

with loading():
    from agent.entrypoints.functions import Answer, push, warm
    from agent.ports.bus import Topic
    from agent.ports.stage_context import Owner

    warm()


@functions_framework.http
def on_alert(request: Request) -> Answer:
    """Take an alert in."""
    return push(request, Owner.INTAKE, Topic.ALERTS)
