"""The console's read-only pages: the list of incidents, one incident with its report, one plan."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from flask import Flask, Response, request
from pydantic import AwareDatetime, ValidationError

from agent.app.incident_reports import ReportFormat, incident_report, written
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.incident.renotify import waits_in
from agent.core.incident.search import IncidentSearch
from agent.core.value import Value
from agent.entrypoints.console.command_routes import command_forms
from agent.entrypoints.console.guard import FOLLOWS
from agent.entrypoints.console.incident_page import cause_of, incident_context, is_asked, plan_context
from agent.entrypoints.console.live_routes import mark_of
from agent.entrypoints.console.page_context import PageContext, incident_or_404, page, plan_or_404, viewer_of, who_asks
from agent.errors import DependencyFailed, InputRejected
from agent.ports.stage_context import StageContext
from agent.ports.store import Query
from agent.presentation.incident_title import TROUBLES
from agent.presentation.standing import Standing, moves, standing
from agent.presentation.what_helped import SimilarIncident, what_helped
from agent.stages.shared.find_incidents import LOOKED_THROUGH, FoundIncidents, find_incidents, similar_earlier

OPEN_SHOWN = 200
DAY = timedelta(days=1)
TEXT_CHARS = 200
ENDED_SHOWN = 50


class Asked(Value):
    """The filters of the list; ``before`` is the page: incidents opened before that time."""

    service: str = ""
    open_only: bool = False
    before: AwareDatetime | None = None
    search: IncidentSearch = IncidentSearch()

    @property
    def filtered(self) -> bool:
        """Return whether any filter is set."""
        return bool(self.service or self.open_only or self.before or self.search.narrow)


class Row(Value):
    """One incident of the list."""

    incident: Incident
    cause: str
    standing: Standing
    waits: bool


def list_context(context: StageContext, asked: Asked, now: datetime) -> dict[str, Any]:
    """Return the template's variables: what a search found; without one, the open incidents and a page of ended."""
    waiting, unlooked = _waiting(context, asked)
    listed = _searched(context, asked) if asked.search.narrow else _by_state(context, asked, waiting, now)
    rows = sorted((row_of(i, now) for i in listed.incidents), key=_order)
    open_count = sum(not row.incident.ended for row in rows)
    return {
        "rows": rows,
        "waiting": sum(row.waits for row in rows),
        "open_count": open_count,
        "untaken": sum(_is_untaken(row.incident) for row in rows),
        "unlooked": unlooked,
        "cut": open_count == OPEN_SHOWN,
        "asked": asked,
        "service": asked.service,
        "services": _services(context, rows),
        "classes": sorted(TROUBLES),
        "day": DAY,
        "open_only": asked.open_only,
        "filtered": asked.filtered,
        "paged": asked.before is not None,
        "searched": listed.looked if asked.search.narrow else 0,
        "older": _older(asked, listed.further_before) if listed.further_before is not None else (),
        "moving": any(moves(row.incident, now) for row in rows) or not (rows or asked.filtered),
    }


def _by_state(context: StageContext, asked: Asked, waiting: tuple[Incident, ...], now: datetime) -> FoundIncidents:
    still_open = () if asked.before else _open_shown(context, asked, waiting, now)
    if asked.open_only:
        return FoundIncidents(incidents=still_open, further_before=None, looked=len(still_open))
    looked = _named(context, asked)
    every_ended = tuple(i for i in looked.incidents if i.ended)
    ended = every_ended[:ENDED_SHOWN]
    further = ended[-1].opened_at if len(every_ended) > ENDED_SHOWN else looked.further_before
    untaken = (i for i in waiting if i.ended)
    shown = {i.id: i for i in (*still_open, *ended, *untaken)}
    return FoundIncidents(incidents=tuple(shown.values()), further_before=further, looked=looked.looked)


def _open_shown(
    context: StageContext, asked: Asked, waiting: tuple[Incident, ...], now: datetime
) -> tuple[Incident, ...]:
    """Return the open incidents: first those that wait for an answer, then the newest."""
    found = _named(context, asked, open_only=True).incidents
    every = {i.id: i for i in (*found, *waiting) if not i.ended}
    return tuple(sorted(every.values(), key=lambda incident: _order(row_of(incident, now)))[:OPEN_SHOWN])


def _waiting(context: StageContext, asked: Asked) -> tuple[tuple[Incident, ...], str]:
    """Return the incidents of any age that wait for a person, and why they could not be looked up, if so.

    The rest of the page is shown without it: in Firestore the question has an index of its own, which may be missing.
    """
    if asked.before or asked.search.narrow:
        return (), ""
    try:
        found = [_named(context, asked, waits_in=phase).incidents for phase in (Phase.ASKED, Phase.ESCALATED)]
    except DependencyFailed as error:
        return (), str(error)
    return (*found[0], *found[1]), ""


def _searched(context: StageContext, asked: Asked) -> FoundIncidents:
    return _named(context, asked, open_only=asked.open_only, limit=ENDED_SHOWN)


def _named(
    context: StageContext,
    asked: Asked,
    *,
    open_only: bool = False,
    waits_in: Phase | None = None,
    limit: int = LOOKED_THROUGH,
) -> FoundIncidents:
    """Look a service up by its whole name, which the store can; where nothing has it, by a part of it."""
    query = Query(open_only=open_only, waits_in=waits_in, before=asked.before)
    if not asked.service:
        return find_incidents(context.store, asked.search, query, limit=limit)
    found = find_incidents(context.store, asked.search, query.with_(service=asked.service), limit=limit)
    watched = context.rules.services.watched(asked.service) is not None
    if found.looked or watched:
        return found
    part = asked.service.casefold()
    wide = find_incidents(context.store, asked.search, query, limit=LOOKED_THROUGH)
    return wide.with_(incidents=tuple(i for i in wide.incidents if part in i.service.casefold())[:limit])


def _services(context: StageContext, rows: list["Row"]) -> list[str]:
    watched = {service.name for service in context.rules.services.services}
    return sorted(watched | {row.incident.service for row in rows})


def row_of(incident: Incident, now: datetime) -> Row:
    """Return an incident as lists show it."""
    waits = is_asked(incident, incident.plan, now)
    return Row(incident=incident, cause=cause_of(incident), standing=standing(incident, now), waits=waits)


def _order(row: Row) -> tuple[int, float]:
    """Sort by: waits for an answer, the soonest to expire first; escalated and not taken on; open; ended."""
    incident = row.incident
    if row.waits and incident.plan is not None:
        return 0, incident.plan.expires_at.timestamp()
    place = 1 if _is_untaken(incident) else 3 if incident.ended else 2
    return place, -incident.opened_at.timestamp()


def _is_untaken(incident: Incident) -> bool:
    """Return whether a person must take over and nobody has."""
    return waits_in(incident) is Phase.ESCALATED


def _older(asked: Asked, oldest: datetime) -> tuple[tuple[str, str], ...]:
    """Return the query of the next page, as names and values."""
    search = asked.search
    kept = {
        "service": asked.service,
        "q": search.text,
        "class": search.class_,
        "since": search.since.date().isoformat() if search.since else "",
        "until": (search.until - DAY).date().isoformat() if search.until else "",
        "open": "1" if asked.open_only and search.narrow else "",
    }
    return ("before", oldest.isoformat()), *((name, value) for name, value in kept.items() if value)


def add_pages(app: Flask, console: PageContext) -> None:
    """Add the routes of the list, an incident and a plan."""

    @app.get("/")
    @app.get("/incidents")
    def incidents() -> Response:
        person, now = who_asks(console), console.context.clock.now()
        context = list_context(console.context, _asked(), now)
        return page(console, "list.html", person, now, moving=context.pop("moving"), **context)

    @app.get("/incidents/<incident_id>")
    def incident(incident_id: str) -> Response:
        person = who_asks(console)
        found = incident_or_404(console, incident_id)
        now = max(console.context.clock.now(), found.phase_at)
        live = console.live.of(found, now)
        context = incident_context(console.context, found, viewer_of(console, person), now)
        context |= {"live": live, "mark": mark_of(found, live, now)}
        context["acts"] = command_forms(console, person, found)
        moving = moves(found, now)
        follows = moving and request.args.get("still") != "1"
        # a hundred incidents are read for them, which is too much every few seconds
        context["similar"] = () if follows else similar_views(console.context, found)
        response = page(console, "incident.html", person, now, moving=moving, **context)
        if follows:
            response.headers[FOLLOWS] = "1"
        return response

    @app.get("/plans/<plan_id>")
    def plan(plan_id: str) -> Response:
        person = who_asks(console)
        found = plan_or_404(console, plan_id)
        incident = console.context.store.load(found.incident)
        now = max(console.context.clock.now(), incident.phase_at)
        context = plan_context(console.context, incident, found, viewer_of(console, person), now)
        return page(console, "plan.html", person, now, **context)


def _asked() -> Asked:
    given = {name: request.args.get(name, "").strip() for name in ("before", "since", "until")}
    try:
        until = _day(given["until"])
        return Asked(
            service=request.args.get("service", "").strip()[:253],
            open_only=request.args.get("open") == "1",
            before=datetime.fromisoformat(given["before"]) if given["before"] else None,
            search=IncidentSearch(
                text=request.args.get("q", "").strip()[:TEXT_CHARS],
                class_=request.args.get("class", "").strip()[:64],
                since=_day(given["since"]),
                until=until + DAY if until is not None else None,
            ),
        )
    except (ValueError, OverflowError, ValidationError) as error:
        strange = ", ".join(f"{name!r} is {value[:40]!r}" for name, value in given.items() if value)
        raise InputRejected(
            "the list was not read", why=f"{strange}; want times", hint="go back to the first page"
        ) from error


def _day(text: str) -> datetime | None:
    """Return the beginning of a day of UTC."""
    return datetime.combine(date.fromisoformat(text), time.min, UTC) if text else None


def similar_views(context: StageContext, incident: Incident) -> tuple[SimilarIncident, ...]:
    """Return earlier incidents with the same cause and what helped, for the partial ``_similar.html``."""
    return tuple(what_helped(earlier) for earlier in similar_earlier(context.store, incident))


_TYPES = {
    ReportFormat.MARKDOWN: "text/markdown; charset=utf-8",
    ReportFormat.JSON: "application/json",
    ReportFormat.HTML: "text/html; charset=utf-8",
}


def add_report(app: Flask, console: PageContext) -> None:
    """Add the route of a report: always a download, so that no script in it runs under the console's address."""

    @app.get("/incidents/<incident_id>/report.<any(md, json, html):form>")
    def report(incident_id: str, form: str) -> Response:
        """Download the report of an incident."""
        who_asks(console)
        found = incident_or_404(console, incident_id)
        records, kind = console.context.service_records, ReportFormat(form)
        draft = incident_report(
            found,
            console.context.store.timeline(found.id),
            seen=records.service_record(found.service) if records is not None else None,
            console_url=console.settings.public_url,
            now=max(console.context.clock.now(), found.phase_at),
        )
        response = Response(written(draft, kind), content_type=_TYPES[kind])
        response.headers["Content-Disposition"] = f'attachment; filename="incident-{found.id}.{form}"'
        return response
