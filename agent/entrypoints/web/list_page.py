"""What the list of incidents shows: what waits for a person first, then what is open, then what has ended."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from agent.core.incident import Incident
from agent.core.phase import Phase
from agent.core.value import Value
from agent.entrypoints.web import wording
from agent.entrypoints.web.incident_page import cause_of
from agent.ports.store import Query
from agent.ports.world import World

SHOWN = 50
LOOKED_THROUGH = 500


class Asked(Value):
    """What of the list is asked for; ``before`` pages through what is older."""

    service: str = ""
    open_only: bool = False
    before: datetime | None = None

    @property
    def filtered(self) -> bool:
        """Whether anything is left out on purpose."""
        return bool(self.service or self.open_only or self.before)


class Row(Value):
    """One incident of the list."""

    incident: Incident
    cause: str
    words: wording.PhaseWords
    waits: bool


def list_context(world: World, asked: Asked, now: datetime) -> dict[str, Any]:
    """Return what the list is made of."""
    found = _found(world, asked)
    rows = sorted((_row(i, now) for i in found), key=_order)[:SHOWN]
    oldest = min((row.incident.opened_at for row in rows), default=None)
    older = len(found) > SHOWN and oldest is not None
    return {
        "rows": rows,
        "waiting": sum(row.waits for row in rows),
        "open_count": sum(not row.incident.ended for row in rows),
        "service": asked.service,
        "services": sorted({i.service for i in found}),
        "open_only": asked.open_only,
        "filtered": asked.filtered,
        "paged": asked.before is not None,
        "older": _older(asked, oldest) if older and oldest else "",
        "moving": any(wording.moves(row.incident, now) for row in rows) or not (rows or asked.filtered),
    }


def _found(world: World, asked: Asked) -> tuple[Incident, ...]:
    """Open incidents are looked up by themselves, so that a thousand newer ends cannot hide one."""
    exact = Query(service=asked.service or None, open_only=asked.open_only, before=asked.before, limit=SHOWN + 1)
    found = _both(world, exact)
    if found or not asked.service:
        return found
    wide = _both(world, exact.with_(service=None, limit=LOOKED_THROUGH))
    word = asked.service.casefold()
    return tuple(i for i in wide if word in i.service.casefold())


def _both(world: World, query: Query) -> tuple[Incident, ...]:
    still_open = world.store.incidents(query.with_(open_only=True))
    every = () if query.open_only else world.store.incidents(query)
    return tuple({i.id: i for i in (*still_open, *every)}.values())


def _row(incident: Incident, now: datetime) -> Row:
    waits = incident.phase is Phase.ASKED and incident.plan is not None and now < incident.plan.expires_at
    return Row(incident=incident, cause=cause_of(incident), words=wording.words_of(incident, now), waits=waits)


def _order(row: Row) -> tuple[int, float]:
    """What waits first, the soonest to expire at the top; then what is open, then the ended, newest first."""
    if row.waits and row.incident.plan is not None:
        return 0, row.incident.plan.expires_at.timestamp()
    return (2 if row.incident.ended else 1), -row.incident.opened_at.timestamp()


def _older(asked: Asked, oldest: datetime) -> str:
    """The next page; ``+`` must not become a blank in the address."""
    words = {"before": oldest.isoformat()}
    if asked.service:
        words["service"] = asked.service
    if asked.open_only:
        words["open"] = "1"
    return urlencode(words)
