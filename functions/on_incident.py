"""Woken by an incident that changed: it is diagnosed, a plan is made, people are asked and told."""

import functions_framework
from flask import Request

from agent.entrypoints.cli.loading import loading

with loading():
    from agent.entrypoints.functions import Answer, push, warm
    from agent.ports.bus import Topic
    from agent.ports.stage_context import Owner

    warm()


@functions_framework.http
def on_incident(request: Request) -> Answer:
    """Run what is due of one incident, or show it to people."""
    return push(request, Owner.INCIDENT, Topic.INCIDENTS)
