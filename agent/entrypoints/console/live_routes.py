"""The stream of an incident's moves, and the script that follows it; both only for pages that move (ADR 0043)."""

from datetime import datetime
from http import HTTPStatus
from typing import Final

from flask import Flask, Response

from agent.core.incident.incident import Incident
from agent.core.value import digest
from agent.entrypoints.console.live_view import LiveProgress
from agent.entrypoints.console.page_context import PageContext, load_or_none, who_asks
from agent.entrypoints.console.render import SCRIPT, SCRIPT_PATH
from agent.presentation.standing import moves

AGAIN_MS: Final = 2000
"""After how many milliseconds a browser asks again: each stream ends with its first event, so none is ever held."""


def add_live(app: Flask, console: PageContext) -> None:
    """Add the routes."""

    @app.get("/incidents/<incident_id>/events")
    def events(incident_id: str) -> Response:
        """Say by a server-sent event when the page of an incident would show something else."""
        who_asks(console)
        incident = load_or_none(console, incident_id)
        if incident is None:
            return Response(status=HTTPStatus.NOT_FOUND)
        now = max(console.context.clock.now(), incident.phase_at)
        if not moves(incident, now):
            return Response(status=HTTPStatus.NO_CONTENT)  # by which a browser stops asking
        mark = mark_of(incident, console.live.of(incident, now), now)
        return Response(f"retry: {AGAIN_MS}\nid: {mark}\ndata: {mark}\n\n", mimetype="text/event-stream")

    @app.get(SCRIPT_PATH)
    def script() -> Response:
        response = Response(SCRIPT, mimetype="text/javascript")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def mark_of(incident: Incident, seen: LiveProgress | None, now: datetime) -> str:
    """Return what changes as soon as the page of an incident would show something else."""
    return digest([incident.version, seen.mark if seen is not None else "", moves(incident, now)])[:16]
