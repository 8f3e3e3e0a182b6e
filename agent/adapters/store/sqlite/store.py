"""The store of incidents in one SQLite file."""

import sqlite3
from datetime import datetime
from functools import lru_cache
from typing import Final

from agent.adapters.store.conflict import head_moved, missing, plan_stored, signal_stored, stale
from agent.adapters.store.named_sql import queries
from agent.adapters.store.row_json import from_text, from_us, to_text, to_us
from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.mark import SqliteMark
from agent.core.incident.incident import Event, Incident
from agent.core.incident.renotify import waits_in
from agent.core.intake.signal import Signal
from agent.core.plan.plan import Plan
from agent.ports.bus import Message
from agent.ports.store import Accepted, Change, Query, committed_at

SQL: Final = queries("state")
REMEMBERED: Final = 64

# Which incidents to list is put together from constant clauses, so that each question uses its own index.
_CLAUSES: Final = {
    "run": "run = :run",
    "service": "service = :service",
    "open_only": "is_open = 1",
    "waits_in": "waits_in = :waits_in",
    "before": "opened_at < :before",
    "since": "opened_at >= :since",
}


class SqliteStore(SqliteMark):
    """Keeps the promises of :class:`agent.ports.store.IncidentStore`; a signal is accepted when it is on the disk.

    Args:
        database: A state database; shared with the bus and whoever else keeps something in that file.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self._known: dict[str, tuple[str, Incident]] = {}

    def accept(self, signal: Signal, incident_id: str) -> Accepted:
        """Store a signal once and count it; see the port. The count of a known signal is not looked up."""
        row = _signal_row(signal, incident_id)
        with self._database.writing() as db:
            if db.execute(SQL["signal_add"], row).rowcount == 0:
                return Accepted(new=False, count=None)
            return Accepted(new=True, count=_count_up(db, incident_id))

    def knows(self, signal_key: str) -> str | None:
        """Return where a signal is stored; see the port."""
        return self._text("signal_home", {"key": signal_key})

    def head(self, key: str) -> str | None:
        """Return the newest incident for a head key; see the port."""
        return self._text("head", {"key": key})

    def load(self, incident_id: str) -> Incident:
        """Return the incident as last committed; see the port."""
        body = self._text("incident", {"id": incident_id})
        if body is None:
            raise missing(incident_id)
        return self._read(incident_id, body)

    def signals(self, incident_id: str, limit: int = 2000) -> tuple[Signal, ...]:
        """Return stored signals by their own time; see the port."""
        with self._database.reading() as db:
            counted = db.execute(SQL["signal_count"], {"incident": incident_id}).fetchone()
            if counted is None:
                return ()
            few = counted[0] <= limit
            first, last = (limit, 0) if few else (limit - limit // 2, limit // 2)
            rows = db.execute(SQL["signals_first"], {"incident": incident_id, "limit": first}).fetchall()
            if last:
                tail = db.execute(SQL["signals_last"], {"incident": incident_id, "limit": last}).fetchall()
                rows += reversed(tail)
        return tuple(from_text(Signal, body) for (body,) in rows)

    def commit(self, change: Change) -> Incident:
        """Write everything in ``change`` or nothing; see the port."""
        read = change.incident.version
        incident = change.incident.with_(version=read + 1)
        body = to_text(incident)
        row = _incident_row(incident, read, body)
        with self._database.writing() as db:
            if db.execute(SQL["incident_replace" if read else "incident_create"], row).rowcount == 0:
                stored = db.execute(SQL["incident_version"], {"id": incident.id}).fetchone()
                raise stale(incident.id, read=read, stored=stored[0] if stored else None)
            for key, before in change.seen.items():
                found = db.execute(SQL["head"], {"key": key}).fetchone()
                if (found[0] if found else None) != before:
                    raise head_moved(key, incident.id)
            _write_signals(db, change)
            _write_plan(db, change)
            db.executemany(SQL["head_set"], [{"key": k, "incident": incident.id} for k in change.heads])
            db.executemany(SQL["timeline_add"], _timeline_rows(change, incident.version))
            db.executemany(SQL["outbox_add"], _outbox_rows(change))
            db.execute(SQL["latest_raise"], {"at": to_us(committed_at(change))})
        return self._remember(incident, body)

    def outbox(self, incident_id: str) -> tuple[Message, ...]:
        """Return what is to be sent, oldest first; see the port."""
        return tuple(from_text(Message, body) for body in self._texts("outbox", {"incident": incident_id}))

    def sent(self, message_ids: tuple[str, ...]) -> None:
        """Forget messages that were published; a power cut may bring them back, and they are sent once more."""
        with self._database.writing(durable=False) as db:
            db.executemany(SQL["outbox_sent"], [{"id": message_id} for message_id in message_ids])

    def unsent(self, limit: int = 100) -> tuple[str, ...]:
        """Return incidents whose outbox is not empty; see the port."""
        return self._texts("outbox_incidents", {"limit": limit})

    def due(self, now: datetime, limit: int = 100) -> tuple[str, ...]:
        """Return incidents that are due; see the port."""
        return self._texts("incidents_due", {"now": to_us(now), "limit": limit})

    def latest_time(self) -> datetime | None:
        """Return the highest time ever committed; see the port."""
        rows = self._database.ask(SQL["latest"])
        return from_us(rows[0][0]) if rows else None

    def incidents(self, query: Query) -> tuple[Incident, ...]:
        """List incidents, newest first; see the port."""
        asked = {name: value for name, value in query if name in _CLAUSES and value not in {None, False}}
        where = " AND ".join(clause for name, clause in _CLAUSES.items() if name in asked) or "1"
        times = {name: to_us(at) for name in ("before", "since") if (at := asked.get(name)) is not None}
        kept: dict[str, object] = {
            "run": query.run,
            "service": query.service,
            "waits_in": query.waits_in,
            "limit": query.limit,
        }
        select = f"SELECT id, body FROM incidents WHERE {where} ORDER BY opened_at DESC, id DESC LIMIT :limit"  # noqa: S608
        return tuple(self._read(*row) for row in self._database.ask(select, kept | times))

    def timeline(self, incident_id: str) -> tuple[Event, ...]:
        """Return the timeline in the order it was committed; see the port."""
        return tuple(_event(body) for body in self._texts("timeline", {"incident": incident_id}))

    def plan(self, plan_id: str) -> Plan | None:
        """Return a plan as it was made; see the port."""
        body = self._text("plan", {"id": plan_id})
        return None if body is None else from_text(Plan, body)

    def _read(self, incident_id: str, body: str) -> Incident:
        """Return the incident of a body; most were just written, and a storm reads one again for each signal."""
        known = self._known.get(incident_id)
        return known[1] if known is not None and known[0] == body else self._remember(from_text(Incident, body), body)

    def _remember(self, incident: Incident, body: str) -> Incident:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[incident.id] = (body, incident)
        return incident

    def _text(self, name: str, values: dict[str, object]) -> str | None:
        rows = self._database.ask(SQL[name], values)
        return str(rows[0][0]) if rows else None

    def _texts(self, name: str, values: dict[str, object]) -> tuple[str, ...]:
        return tuple(str(text) for (text,) in self._database.ask(SQL[name], values))


@lru_cache(maxsize=256)
def _event(body: str) -> Event:
    """Return an event of a timeline; each notification reads the whole timeline."""
    return from_text(Event, body)


def _write_signals(db: sqlite3.Connection, change: Change) -> None:
    for signal in change.signals:
        if db.execute(SQL["signal_add"], _signal_row(signal, change.incident.id)).rowcount == 0:
            raise signal_stored(signal.key, change.incident.id)
        _count_up(db, change.incident.id)


def _write_plan(db: sqlite3.Connection, change: Change) -> None:
    plan = change.plan
    if plan is None:
        return
    row = {"id": plan.id, "incident": plan.incident, "body": to_text(plan)}
    if db.execute(SQL["plan_add"], row).rowcount == 0:
        (stored,) = db.execute(SQL["plan"], {"id": plan.id}).fetchone()
        if from_text(Plan, stored).digest != plan.digest:
            raise plan_stored(plan.id, change.incident.id)


def _count_up(db: sqlite3.Connection, incident_id: str) -> int:
    (count,) = db.execute(SQL["signal_count_up"], {"incident": incident_id}).fetchone()
    return int(count)


def _incident_row(incident: Incident, read: int, body: str) -> dict[str, object]:
    return {
        "id": incident.id,
        "version": read,
        "run": incident.run,
        "service": incident.service,
        "is_open": 0 if incident.ended else 1,
        "waits_in": waits_in(incident),
        "opened_at": to_us(incident.opened_at),
        "due_at": None if incident.wakes_at is None else to_us(incident.wakes_at),
        "body": body,
    }


def _signal_row(signal: Signal, incident_id: str) -> dict[str, object]:
    return {"key": signal.key, "incident": incident_id, "at": to_us(signal.at), "body": to_text(signal)}


def _timeline_rows(change: Change, version: int) -> list[dict[str, object]]:
    return [
        {"incident": change.incident.id, "version": version, "place": place, "body": to_text(event)}
        for place, event in enumerate(change.events)
    ]


def _outbox_rows(change: Change) -> list[dict[str, object]]:
    return [{"id": m.id, "incident": change.incident.id, "body": to_text(m)} for m in change.messages]
