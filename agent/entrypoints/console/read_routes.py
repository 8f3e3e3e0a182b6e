"""The pages that are only read: the list, one incident, one plan; asking for them changes nothing."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from flask import Flask, Response, request
from pydantic import AwareDatetime, ValidationError

from agent.core.incident.incident import Incident
from agent.core.value import Value
from agent.entrypoints.console import answer_result
from agent.entrypoints.console.incident_page import cause_of, incident_context, is_asked, plan_context
from agent.entrypoints.console.page_context import PageContext, answer_page, load_or_none, page, viewer_of, who_asks
from agent.errors import InputRejected
from agent.ports.stage_context import StageContext
from agent.ports.store import Query
from agent.presentation.standing import Standing, moves, standing

OPEN_SHOWN = 200
ENDED_SHOWN = 50
LOOKED_THROUGH = 500


class Asked(Value):
    """What of the list is asked for; ``before`` pages through what has ended longer ago."""

    service: str = ""
    open_only: bool = False
    before: AwareDatetime | None = None

    @property
    def filtered(self) -> bool:
        """Whether anything is left out on purpose."""
        return bool(self.service or self.open_only or self.before)


class Row(Value):
    """One incident of the list."""

    incident: Incident
    cause: str
    standing: Standing
    waits: bool


def list_context(world: StageContext, asked: Asked, now: datetime) -> dict[str, Any]:
    """Return what the list is made of: every open incident on the first page, then the ended ones, page by page."""
    still_open = () if asked.before else _matching(world, asked, Query(open_only=True, limit=OPEN_SHOWN))
    looked = () if asked.open_only else _matching(world, asked, Query(before=asked.before, limit=LOOKED_THROUGH))
    every_ended = tuple(i for i in looked if i.ended)
    ended = every_ended[:ENDED_SHOWN]
    rows = sorted((row_of(i, now) for i in (*still_open, *ended)), key=_order)
    further = ended[-1] if len(every_ended) > ENDED_SHOWN else looked[-1] if len(looked) == LOOKED_THROUGH else None
    return {
        "rows": rows,
        "waiting": sum(row.waits for row in rows),
        "open_count": len(still_open),
        "cut": len(still_open) == OPEN_SHOWN,
        "service": asked.service,
        "services": sorted({row.incident.service for row in rows}),
        "open_only": asked.open_only,
        "filtered": asked.filtered,
        "paged": asked.before is not None,
        "older": _older(asked, further.opened_at) if further is not None else "",
        "moving": any(moves(row.incident, now) for row in rows) or not (rows or asked.filtered),
    }


def _matching(world: StageContext, asked: Asked, query: Query) -> tuple[Incident, ...]:
    """Look a service up by its whole name, which the store can; where nothing has it, by a part of it."""
    if not asked.service:
        return world.store.incidents(query)
    found = world.store.incidents(query.with_(service=asked.service))
    if found:
        return found
    part = asked.service.casefold()
    wide = world.store.incidents(query.with_(limit=LOOKED_THROUGH))
    return tuple(i for i in wide if part in i.service.casefold())


def row_of(incident: Incident, now: datetime) -> Row:
    """Return an incident as lists show it."""
    waits = is_asked(incident, incident.plan, now)
    return Row(incident=incident, cause=cause_of(incident), standing=standing(incident, now), waits=waits)


def _order(row: Row) -> tuple[int, float]:
    """What waits first, the soonest to expire at the top; then what is open, then the ended, newest first."""
    if row.waits and row.incident.plan is not None:
        return 0, row.incident.plan.expires_at.timestamp()
    return (2 if row.incident.ended else 1), -row.incident.opened_at.timestamp()


def _older(asked: Asked, oldest: datetime) -> str:
    """The next page; ``+`` must not become a blank in the address."""
    return urlencode({"before": oldest.isoformat()} | ({"service": asked.service} if asked.service else {}))


def add_pages(app: Flask, console: PageContext) -> None:
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
            return answer_page(console, person, answer_result.missing("incident"))
        now = max(console.world.clock.now(), found.phase_at)
        context = incident_context(console.world, found, viewer_of(console, person), now)
        return page(console, "incident.html", person, now, moving=moves(found, now), **context)

    @app.get("/plans/<plan_id>")
    def plan(plan_id: str) -> Response:
        person = who_asks(console)
        found = console.world.store.plan(plan_id)
        if found is None:
            return answer_page(console, person, answer_result.missing("plan"))
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
