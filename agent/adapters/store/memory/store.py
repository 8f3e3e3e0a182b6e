"""The store of incidents in memory: for tests, simulations, and replays that keep nothing."""

import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

from agent.adapters.store.conflict import head_moved, missing, plan_stored, signal_stored, stale
from agent.adapters.store.memory.mark import MemoryMark
from agent.adapters.store.row_json import from_text, to_text
from agent.core.incident.incident import Event, Incident
from agent.core.incident.renotify import is_unattended
from agent.core.intake.signal import Signal, in_order
from agent.core.plan.plan import Plan
from agent.ports.bus import Message
from agent.ports.store import Accepted, Change, Query, committed_at


class MemoryStore(MemoryMark):
    """Keeps the promises of :class:`agent.ports.store.IncidentStore` until the process ends.

    Bodies are kept as JSON text like in every other store, so that nobody changes a stored value by accident and a
    value that would not survive the trip is noticed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._incidents: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._due: dict[str, datetime] = {}
        self._heads: dict[str, str] = {}
        self._homes: dict[str, str] = {}
        self._signals: dict[str, list[str]] = {}
        self._timelines: dict[str, list[str]] = {}
        self._plans: dict[str, str] = {}
        self._outbox: dict[str, tuple[str, str]] = {}  # incident and body by message id, oldest first
        self._latest: datetime | None = None

    def accept(self, signal: Signal, incident_id: str) -> Accepted:
        """Store a signal once and count it; see the port. The count of a known signal is not looked up."""
        body = to_text(signal)
        with self._lock:
            if signal.key in self._homes:
                return Accepted(new=False, count=None)
            return Accepted(new=True, count=self._add_signal(signal.key, incident_id, body))

    def knows(self, signal_key: str) -> str | None:
        """Return where a signal is stored; see the port."""
        with self._lock:
            return self._homes.get(signal_key)

    def head(self, key: str) -> str | None:
        """Return the newest incident for a head key; see the port."""
        with self._lock:
            return self._heads.get(key)

    def load(self, incident_id: str) -> Incident:
        """Return the incident as last committed; see the port."""
        with self._lock:
            body = self._incidents.get(incident_id)
        if body is None:
            raise missing(incident_id)
        return from_text(Incident, body)

    def signals(self, incident_id: str, limit: int = 2000) -> tuple[Signal, ...]:
        """Return stored signals by their own time; see the port."""
        with self._lock:
            bodies = tuple(self._signals.get(incident_id, ()))
        ordered = in_order(tuple(from_text(Signal, body) for body in bodies))
        if len(ordered) <= limit:
            return ordered
        first, last = limit - limit // 2, limit // 2
        return (*ordered[:first], *ordered[len(ordered) - last :])

    def commit(self, change: Change) -> Incident:
        """Write everything in ``change`` or nothing; see the port."""
        read = change.incident.version
        incident = change.incident.with_(version=read + 1)
        body = to_text(incident)
        signals = [(s.key, to_text(s)) for s in change.signals]
        events = [to_text(event) for event in change.events]
        messages = [(m.id, to_text(m)) for m in change.messages]
        plan = None if change.plan is None else (change.plan.id, to_text(change.plan))
        with self._lock:
            self._refuse_rivals(change)
            self._incidents[incident.id] = body
            self._versions[incident.id] = incident.version
            self._set_due(incident)
            for key, text in signals:
                self._add_signal(key, incident.id, text)
            self._heads.update(dict.fromkeys(change.heads, incident.id))
            self._timelines.setdefault(incident.id, []).extend(events)
            for message_id, text in messages:
                self._outbox.setdefault(message_id, (incident.id, text))
            if plan is not None:
                self._plans.setdefault(*plan)
            self._latest = max(committed_at(change), self._latest or committed_at(change))
        return incident

    def outbox(self, incident_id: str) -> tuple[Message, ...]:
        """Return what is to be sent, oldest first; see the port."""
        with self._lock:
            bodies = tuple(body for home, body in self._outbox.values() if home == incident_id)
        return tuple(from_text(Message, body) for body in bodies)

    def sent(self, message_ids: tuple[str, ...]) -> None:
        """Forget messages that were published; see the port."""
        with self._lock:
            for message_id in message_ids:
                self._outbox.pop(message_id, None)

    def unsent(self, limit: int = 100) -> tuple[str, ...]:
        """Return incidents whose outbox is not empty; see the port."""
        with self._lock:
            return tuple(dict.fromkeys(home for home, _ in self._outbox.values()))[:limit]

    def due(self, now: datetime, limit: int = 100) -> tuple[str, ...]:
        """Return incidents that are due; see the port."""
        with self._lock:
            waiting = sorted((at, incident) for incident, at in self._due.items() if at <= now)
        return tuple(incident for _, incident in waiting[:limit])

    def latest_time(self) -> datetime | None:
        """Return the highest time ever committed; see the port."""
        with self._lock:
            return self._latest

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """List incidents, newest first; see the port."""
        with self._lock:
            bodies = tuple(self._incidents.values())
        found = _matching((from_text(Incident, body) for body in bodies), query)
        return tuple(sorted(found, key=lambda i: (i.opened_at, i.id), reverse=True)[: query.limit])

    def unattended(self, limit: int = 200) -> tuple[Incident, ...]:
        """Return what waits for a person and nobody took on, newest first; see the port."""
        with self._lock:
            bodies = tuple(self._incidents.values())
        found = (i for i in (from_text(Incident, body) for body in bodies) if is_unattended(i))
        return tuple(sorted(found, key=lambda i: (i.opened_at, i.id), reverse=True)[:limit])

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Return the timeline in the order it was committed; see the port."""
        with self._lock:
            bodies = tuple(self._timelines.get(incident_id, ()))
        return tuple(from_text(Event, body) for body in bodies)

    def plan(self, plan_id: str) -> Plan | None:
        """Return a plan as it was made; see the port."""
        with self._lock:
            body = self._plans.get(plan_id)
        return None if body is None else from_text(Plan, body)

    def _refuse_rivals(self, change: Change) -> None:
        incident = change.incident
        stored = self._versions.get(incident.id)
        if (stored or 0) != incident.version:
            raise stale(incident.id, read=incident.version, stored=stored)
        for key, before in change.seen.items():
            if self._heads.get(key) != before:
                raise head_moved(key, incident.id)
        keys = [signal.key for signal in change.signals]
        for place, key in enumerate(keys):
            if key in self._homes or key in keys[:place]:
                raise signal_stored(key, incident.id)
        plan = change.plan
        kept = self._plans.get(plan.id) if plan is not None else None
        if plan is not None and kept is not None and from_text(Plan, kept).digest != plan.digest:
            raise plan_stored(plan.id, incident.id)

    def _add_signal(self, key: str, incident_id: str, body: str) -> int:
        self._homes[key] = incident_id
        stored = self._signals.setdefault(incident_id, [])
        stored.append(body)
        return len(stored)

    def _set_due(self, incident: Incident) -> None:
        wakes_at = incident.wakes_at
        if wakes_at is None:
            self._due.pop(incident.id, None)
        else:
            self._due[incident.id] = wakes_at


def _matching(incidents: Iterable[Incident], query: Query) -> Iterable[Incident]:
    return (
        incident
        for incident in incidents
        if query.run in {None, incident.run}
        and query.service in {None, incident.service}
        and not (query.open_only and incident.ended)
        and (query.before is None or incident.opened_at < query.before)
        and (query.since is None or incident.opened_at >= query.since)
    )


class MemoryCards:
    """Keeps the promises of :class:`agent.ports.stage_context.Cards` until the process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._references: dict[tuple[str, str], str] = {}
        self._claims: dict[tuple[str, str], tuple[str, datetime]] = {}

    def card(self, incident_id: str, notifier: str) -> str | None:
        """Return the reference of the message, or None; see the port."""
        with self._lock:
            return self._references.get((incident_id, notifier))

    def keep_card(self, incident_id: str, notifier: str, reference: str) -> None:
        """Keep the reference; see the port."""
        with self._lock:
            self._references[incident_id, notifier] = reference
            self._claims.pop((incident_id, notifier), None)

    def claim_card(
        self, incident_id: str, notifier: str, holder: str, *, reference: str | None, now: datetime, for_s: float
    ) -> bool:
        """Take the right to show it; see the port."""
        slot = (incident_id, notifier)
        with self._lock:
            held = self._claims.get(slot)
            if self._references.get(slot) != reference or (held is not None and held[0] != holder and now < held[1]):
                return False
            self._claims[slot] = (holder, now + timedelta(seconds=for_s))
            return True

    def release_card(self, incident_id: str, notifier: str, holder: str) -> None:
        """Give the right back; see the port."""
        with self._lock:
            if self._claims.get((incident_id, notifier), ("",))[0] == holder:
                del self._claims[incident_id, notifier]
