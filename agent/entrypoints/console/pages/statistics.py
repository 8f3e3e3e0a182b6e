"""The page of statistics: incidents by class, how long each part took, verdicts, model cost, error budgets."""

from datetime import datetime, timedelta
from typing import Any, Final

from flask import Flask, Response, request

from agent.core.incident.durations import durations
from agent.core.incident.statistics import statistics_of
from agent.core.intake.signal import LIVE
from agent.core.service.request_counts import RequestBudget, hour_of
from agent.entrypoints.console.page_context import PageContext, page, who_asks
from agent.errors import InputRejected
from agent.ports.store import Query

LOOKED_THROUGH: Final = 200
"""Incidents whose timelines one page reads at most."""
WINDOWS: Final = {"7": "7 days", "30": "30 days", "90": "90 days"}
OBJECTIVES: Final = {"": "of each service", "99": "99 %", "99.5": "99.5 %", "99.9": "99.9 %"}
UNSAID_PERCENT: Final = 99.5
"""The objective of a service for which services.toml names none."""


def add_statistics(app: Flask, console: PageContext) -> None:
    """Add the page."""

    @app.get("/statistics")
    def statistics() -> Response:
        person, now = who_asks(console), console.context.clock.now()
        days, objective = request.args.get("days", "30"), request.args.get("objective", "")
        if days not in WINDOWS or objective not in OBJECTIVES:
            why = "the window or the objective is none of the list"
            raise InputRejected("the figures were not read", why=why, hint="choose one of the list")
        return page(console, "statistics.html", person, now, **_context(console, now, days, objective))


def _context(console: PageContext, now: datetime, days: str, objective: str) -> dict[str, Any]:
    context, price = console.context, console.settings.model_price
    since = now - timedelta(days=int(days))
    found = context.store.incidents(Query(run=LIVE, since=since, limit=LOOKED_THROUGH))
    troubles = [incident for incident in found if incident.request is None]
    cut = len(found) == LOOKED_THROUGH
    begins = found[-1].opened_at if cut else since
    measured = [(incident, durations(incident, context.store.timeline(incident.id))) for incident in troubles]

    def share_of(name: str) -> float:
        watched = context.rules.services.watched(name)
        declared = watched.objective if watched is not None else None
        return float(objective or declared or UNSAID_PERCENT) / 100

    figures = statistics_of(measured, since=begins, now=now, objective=share_of)
    counts = context.request_counts.requests_since(since) if context.request_counts is not None else {}
    requests = [RequestBudget(service=name, counts=of, objective=share_of(name)) for name, of in counts.items()]
    return {
        "figures": figures,
        "requests": sorted(requests, key=lambda row: (-row.used, row.service)),
        "counted_since": hour_of(since),
        "model_usd": price.of(figures.model) if price is not None else None,
        "since": begins,
        "cut": cut,
        "days": days,
        "objective": objective,
        "windows": WINDOWS,
        "objectives": OBJECTIVES,
    }
