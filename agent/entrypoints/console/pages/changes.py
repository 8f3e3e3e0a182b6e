"""The page of changes: what people asked for and the agent applied, and what was changed without it."""

from datetime import datetime
from typing import Any, Final

from flask import Flask, Response, request
from pydantic import AwareDatetime, Field, ValidationError

from agent.core.change.config_drift import ConfigChange
from agent.core.decision.decision import Choice, Decision
from agent.core.incident.incident import Incident
from agent.core.value import Value
from agent.entrypoints.console.page_context import PageContext, page, who_asks
from agent.errors import InputRejected
from agent.ports.stage_context import StageContext
from agent.ports.store import Query
from agent.presentation.drift_text import change_text
from agent.presentation.plan_title import plan_title
from agent.presentation.standing import Standing, moves, standing
from agent.stages.shared.find_incidents import find_changes

SHOWN: Final = 50
OUTSIDE_SHOWN: Final = 20


class _Asked(Value):
    """What of the list is asked for."""

    service: str = Field(default="", max_length=253)
    before: AwareDatetime | None = None


class ChangeRow(Value):
    """A change that went through the agent.

    Attributes:
        asked_by: Who asked for it; empty where the agent proposed it for an incident.
        decided: Who answered, and how; empty where nobody did.
        verdict: What was measured after it; empty where nothing was applied.
    """

    incident: Incident
    title: str
    standing: Standing
    asked_by: str
    decided: str
    verdict: str


class OutsideChange(Value):
    """A change of a service that did not go through the agent."""

    service: str
    change: ConfigChange
    says: str


def add_changes(app: Flask, console: PageContext) -> None:
    """Add the page."""

    @app.get("/changes")
    def changes() -> Response:
        person, now = who_asks(console), console.context.clock.now()
        context = _context(console.context, _asked(), now)
        return page(console, "changes.html", person, now, moving=context.pop("moving"), **context)


def _context(context: StageContext, asked: _Asked, now: datetime) -> dict[str, Any]:
    query = Query(service=asked.service or None, before=asked.before)
    found = find_changes(context.store, query, limit=SHOWN)
    kept = {"service": asked.service} if asked.service else {}
    older = {"before": found.further_before.isoformat()} | kept if found.further_before is not None else {}
    return {
        "rows": [change_row(i, now) for i in found.incidents],
        "outside": _outside(context, asked.service) if asked.before is None else (),
        "service": asked.service,
        "services": sorted(service.name for service in context.rules.services.services),
        "older": tuple(older.items()),
        "moving": any(moves(i, now) for i in found.incidents),
    }


def _answer(decision: Decision) -> str:
    return f"{'approved' if decision.answer is Choice.APPROVE else 'rejected'} by {decision.shown}"


def change_row(incident: Incident, now: datetime) -> ChangeRow:
    """Return a change as the list shows it."""
    decision, verification, request_ = incident.decision, incident.verification, incident.request
    title = plan_title(incident.plan) if incident.plan is not None else "The plan is being made"
    return ChangeRow(
        incident=incident,
        title=title,
        standing=standing(incident, now),
        asked_by=request_.asker if request_ is not None else "",
        decided=_answer(decision) if decision is not None else "",
        verdict=verification.verdict.value if verification is not None and verification.verdict is not None else "",
    )


def _outside(context: StageContext, service: str) -> tuple[OutsideChange, ...]:
    records = context.service_records
    names = [s.name for s in context.rules.services.services if service in {"", s.name}]
    found = []
    for name in names:
        record = records.service_record(name) if records is not None else None
        changes = record.changes if record is not None else ()
        found += [OutsideChange(service=name, change=c, says=change_text(c)) for c in changes if not c.ours]
    return tuple(sorted(found, key=lambda row: row.change.at, reverse=True)[:OUTSIDE_SHOWN])


def _asked() -> _Asked:
    before = request.args.get("before") or None
    try:
        return _Asked(
            service=request.args.get("service", "").strip(), before=datetime.fromisoformat(before) if before else None
        )
    except (ValueError, ValidationError) as error:
        raise InputRejected(
            "the list was not read", why=f"'before' is {before!r}, want a time", hint="go back to the first page"
        ) from error
