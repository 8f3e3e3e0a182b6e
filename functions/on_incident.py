"""Woken by an incident that changed: it is diagnosed, a plan is made, people are asked and told."""

import functions_framework
from flask import Request

from agent.entrypoints.cold_start import loading

with loading():
    from agent.entrypoints.function_app import StatusReply, warm
    from agent.entrypoints.pubsub.push import push
    from agent.ports.bus import Topic

    warm()


@functions_framework.http
def on_incident(request: Request) -> StatusReply:
    """Run what is due of one incident, or show it to people."""
    return push(request, Topic.INCIDENTS)
