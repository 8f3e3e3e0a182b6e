"""Woken by senders that post and cannot publish: an authenticated alert becomes a message."""

import functions_framework
from flask import Request

from agent.entrypoints.cli.loading import loading

with loading():
    from agent.entrypoints.functions import Answer, post


@functions_framework.http
def ingest(request: Request) -> Answer:
    """Publish an alert of a sender that we know."""
    return post(request)
