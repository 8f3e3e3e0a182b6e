"""Stored incidents in pages, newest first: where a page goes on, and all that are open, up to a limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from agent.core.incident.incident import Incident
from agent.ports.store import IncidentStore, Query

OPEN_PAGE: Final = 1000
OPEN_PAGES: Final = 5  # of which a scrape reads so many


@dataclass(frozen=True, kw_only=True)
class OpenIncidents:
    """What is open.

    Attributes:
        incidents: Each of them once, newest first.
        truncated: Whether all pages were full; then the oldest may be missing.
    """

    incidents: tuple[Incident, ...]
    truncated: bool


def open_incidents(store: IncidentStore) -> OpenIncidents:
    """List what is open, replays and change requests included.

    Raises:
        DependencyFailed: The store did not answer.
    """
    found: dict[str, Incident] = {}
    before: datetime | None = None
    for _ in range(OPEN_PAGES):
        page = store.incidents(Query(open_only=True, before=before, limit=OPEN_PAGE))
        found |= {incident.id: incident for incident in page}
        if len(page) < OPEN_PAGE:
            return OpenIncidents(incidents=tuple(found.values()), truncated=False)
        before = next_before(page, before)
    return OpenIncidents(incidents=tuple(found.values()), truncated=True)


def next_before(page: Sequence[Incident], before: datetime | None) -> datetime:
    """Return where the next page begins; several incidents may share a moment, so the last one is listed again.

    Args:
        page: A full page, newest first.
        before: Where it began itself. Where all of it share one moment, further ones of that moment are passed over.
    """
    oldest = page[-1].opened_at
    again = oldest + timedelta(microseconds=1)
    return oldest if again == before else again
