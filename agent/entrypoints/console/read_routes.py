"""The pages that are only read: the list, one incident, one plan; asking for them changes nothing."""

from datetime import datetime

from flask import Flask, Response, request
from pydantic import ValidationError

from agent.entrypoints.console import answering
from agent.entrypoints.console.console import Console, answer_page, load_or_none, page, viewer_of, who_asks
from agent.entrypoints.console.incident_page import incident_context, plan_context
from agent.entrypoints.console.list_page import Asked, list_context
from agent.errors import InputRejected
from agent.presentation.standing import moves


def add_pages(app: Flask, console: Console) -> None:
    """Add the routes."""

    @app.get("/")
    @app.get("/incidents")
    def incidents() -> Response:
        person, now = who_asks(console), console.world.clock.now()
        context = list_context(console.world, _asked(), now)
        return page(console, "list.html", person, now, moving=context.pop("moving"), **context)

    @app.get("/incidents/<incident_id>")
    def incident(incident_id: str) -> Response:
        person = who_asks(console)
        found = load_or_none(console, incident_id)
        if found is None:
            return answer_page(console, person, answering.missing("incident"))
        now = max(console.world.clock.now(), found.phase_at)
        context = incident_context(console.world, found, viewer_of(console, person), now)
        return page(console, "incident.html", person, now, moving=moves(found, now), **context)

    @app.get("/plans/<plan_id>")
    def plan(plan_id: str) -> Response:
        person = who_asks(console)
        found = console.world.store.plan(plan_id)
        if found is None:
            return answer_page(console, person, answering.missing("plan"))
        incident = console.world.store.load(found.incident)
        now = max(console.world.clock.now(), incident.phase_at)
        context = plan_context(console.world, incident, found, viewer_of(console, person), now)
        return page(console, "plan.html", person, now, **context)


def _asked() -> Asked:
    before = request.args.get("before")
    try:
        return Asked(
            service=request.args.get("service", "").strip()[:253],
            open_only=request.args.get("open") == "1",
            before=datetime.fromisoformat(before) if before else None,
        )
    except (ValueError, ValidationError) as error:
        raise InputRejected(
            "the list was not read", why=f"'before' is {before!r}, want a time", hint="go back to the first page"
        ) from error
