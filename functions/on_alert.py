"""Woken by Cloud Monitoring and by what ingest publishes: an alert becomes a signal of an incident."""

import functions_framework
from flask import Request

from agent.entrypoints.cold_start import loading

with loading():
    from agent.entrypoints.function_app import StatusReply, warm
    from agent.entrypoints.pubsub.push import push
    from agent.ports.bus import Topic

    warm()


@functions_framework.http
def on_alert(request: Request) -> StatusReply:
    """Take an alert in."""
    return push(request, Topic.ALERTS)
