"""Looking for incidents: every question reads a bounded number of them, however many are stored."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from agent.core.incident.incident import Incident
from agent.core.incident.search import IncidentSearch, most_alike
from agent.core.value import Value
from agent.ports.store import IncidentStore, Query

LOOKED_THROUGH: Final = 500
"""Incidents that one search reads at most; there is no index of words, and a store charges for each read."""

SIMILAR_OF_SERVICE: Final = 40
SIMILAR_OF_ALL: Final = 60
SIMILAR_SHOWN: Final = 5


class FoundIncidents(Value):
    """What one search found.

    Attributes:
        incidents: Newest first.
        further_before: Search on among those opened before this time; None where nothing is left.
        looked: How many were read.
    """

    incidents: tuple[Incident, ...]
    further_before: datetime | None
    looked: int


def find_incidents(store: IncidentStore, search: IncidentSearch, query: Query, *, limit: int) -> FoundIncidents:
    """Return the newest incidents that match, among the ``LOOKED_THROUGH`` newest that a store can tell apart itself.

    Args:
        store: Where they are.
        search: What the store cannot tell apart.
        query: What it can; its own limit and times are not looked at but for ``before``.
        limit: At most so many.
    """
    ends = [at for at in (query.before, search.until) if at is not None]
    asked = query.with_(since=search.since, before=min(ends, default=None))
    return _found(store, asked, search.matches, limit)


def find_changes(store: IncidentStore, query: Query, *, limit: int) -> FoundIncidents:
    """Return the newest requests, and incidents for which a service was changed, among as many as a search reads."""
    return _found(store, query, lambda i: i.request is not None or i.execution is not None, limit)


def _found(store: IncidentStore, query: Query, wanted: Callable[[Incident], bool], limit: int) -> FoundIncidents:
    looked = store.incidents(query.with_(limit=LOOKED_THROUGH))
    matching = tuple(i for i in looked if wanted(i))
    shown = matching[:limit]
    last = shown[-1] if len(matching) > limit else looked[-1] if len(looked) == LOOKED_THROUGH else None
    return FoundIncidents(
        incidents=shown, further_before=last.opened_at if last is not None else None, looked=len(looked)
    )


def similar_earlier(store: IncidentStore, incident: Incident) -> tuple[Incident, ...]:
    """Return the newest earlier incidents with the same cause, of this service first; a hundred are read at most."""
    if incident.request is not None or incident.diagnosis is None:
        return ()
    own = store.incidents(Query(service=incident.service, before=incident.opened_at, limit=SIMILAR_OF_SERVICE))
    every = store.incidents(Query(run=incident.run, before=incident.opened_at, limit=SIMILAR_OF_ALL))
    return most_alike(incident, (*own, *every), SIMILAR_SHOWN)
