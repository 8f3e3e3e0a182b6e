"""The control database in a SQLite file of its own, that only the deciding and executing functions write."""

import sqlite3
from datetime import datetime, timedelta
from typing import Final

from agent.adapters.store.named_sql import queries
from agent.adapters.store.row_json import from_text, from_us, to_text, to_us
from agent.adapters.store.sqlite.mark import SqliteMark
from agent.core.change.execution import Intent
from agent.core.change.request import ChangeRequest
from agent.core.decision.audit import REPEATS, AuditRow, existing_row, next_row
from agent.core.decision.decision import Ballot
from agent.ports.control import (
    BeginResult,
    BegunChanges,
    CastOutcome,
    CastResult,
    KillSwitch,
    Lease,
    Limits,
    RateLimit,
    ReceiptUse,
)

SQL: Final = queries("control")
FORGOTTEN_AFTER: Final = timedelta(hours=1)  # after its end, so that a clock that steps back finds a name still used


class SqliteControlStore(SqliteMark):
    """Keeps the promises of :class:`agent.ports.control.ControlStore`; every write is on the disk when it returns."""

    def claim(self, incident: str, plan: str, decision_id: str) -> str:
        """Record the first decision of a plan; see the port."""
        row = {"plan": plan, "incident": incident, "decision": decision_id}
        with self._database.writing() as db:
            db.execute(SQL["claim_add"], row)
            return str(db.execute(SQL["claim"], {"plan": plan}).fetchone()[0])

    def add_request(self, request: ChangeRequest) -> ChangeRequest:
        """Record a change request; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["request_add"], {"id": request.id, "body": to_text(request)})
            return from_text(ChangeRequest, db.execute(SQL["request"], {"id": request.id}).fetchone()[0])

    def change_request(self, request_id: str) -> ChangeRequest | None:
        """Return a recorded change request; see the port."""
        rows = self._database.ask(SQL["request"], {"id": request_id})
        return from_text(ChangeRequest, rows[0][0]) if rows else None

    def ballot(self, plan_digest: str) -> Ballot | None:
        """Return the votes about a plan; see the port."""
        rows = self._database.ask(SQL["ballot"], {"plan_digest": plan_digest})
        return from_text(Ballot, rows[0][0]) if rows else None

    def cast(self, ballot: Ballot, *, before: Ballot | None, decision: str | None = None) -> CastResult:
        """Replace the votes about a plan; see the port."""
        with self._database.writing() as db:
            held = db.execute(SQL["claim"], {"plan": ballot.plan}).fetchone()
            if held is not None:
                return CastResult(outcome=CastOutcome.DECIDED, decision=str(held[0]))
            stored = db.execute(SQL["ballot"], {"plan_digest": ballot.plan_digest}).fetchone()
            if (from_text(Ballot, stored[0]) if stored is not None else None) != before:
                return CastResult(outcome=CastOutcome.STALE)
            db.execute(SQL["ballot_set"], {"plan_digest": ballot.plan_digest, "body": to_text(ballot)})
            if decision is not None:
                db.execute(SQL["claim_add"], {"plan": ballot.plan, "incident": ballot.incident, "decision": decision})
        return CastResult(outcome=CastOutcome.CAST, decision=decision or "")

    def begin(
        self, intent: Intent, *, rate_limit: RateLimit | None = None, begun_before: int | None = None
    ) -> BeginResult:
        """Use a receipt and store the intent; see the port."""
        key = intent.key
        row = {"decision": intent.decision, "effect": key, "service": intent.service, "at": to_us(intent.applied_at)}
        with self._database.writing() as db:
            if db.execute(SQL["closed"], {"effect": key}).fetchone() is not None:
                return BeginResult(use=ReceiptUse.CLOSED)
            held = db.execute(SQL["receipt"], {"decision": intent.decision}).fetchone()
            if held is not None and held[0] != key:
                return BeginResult(use=ReceiptUse.SPENT)
            if held is None and rate_limit is not None and not _has(db, rate_limit, intent):
                return BeginResult(use=ReceiptUse.RATE_LIMITED)
            if held is None and begun_before is not None and _begun_count(db) != begun_before:
                return BeginResult(use=ReceiptUse.STALE)
            db.execute(SQL["receipt_add"], row)
            return BeginResult(use=ReceiptUse.OURS, intent=_first_intent(db, intent))

    def begun(self, since: datetime) -> BegunChanges:
        """Return the changes that were begun; see the port."""
        with self._database.reading() as db:
            count, rows = _begun_count(db), db.execute(SQL["begun"], {"since": to_us(since)}).fetchall()
        return BegunChanges(count=count, intents=tuple(from_text(Intent, body) for (body,) in rows))

    def add_intent(self, intent: Intent) -> Intent | None:
        """Store the intent of a further effect; see the port."""
        with self._database.writing() as db:
            if db.execute(SQL["closed"], {"effect": intent.key}).fetchone() is not None:
                return None
            return _first_intent(db, intent)

    def intent(self, key: str) -> Intent | None:
        """Return the stored intent of an effect; see the port."""
        rows = self._database.ask(SQL["intent"], {"effect": key})
        if not rows:
            return None
        body, closed = rows[0]
        return from_text(Intent, body).with_(closed=closed or "")

    def close_intent(self, key: str, why: str) -> None:
        """Close an effect for good; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["intent_close"], {"effect": key, "why": why})

    def use_once(self, name: str, *, at: datetime, until: datetime) -> bool:
        """Record that something happens once; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["used_forget"], {"before": to_us(at - FORGOTTEN_AFTER)})
            return db.execute(SQL["used_add"], {"name": name, "until": to_us(until)}).rowcount == 1

    def give_back(self, name: str) -> None:
        """Forget a use; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["used_give_back"], {"name": name})

    def limits(self, service: str, since: datetime) -> Limits:
        """Return the changes since a time, oldest first; see the port."""
        asked = {"service": service, "since": to_us(since)}
        with self._database.reading() as db:
            of_service = db.execute(SQL["changes_of_service"], asked).fetchall()
            of_all = db.execute(SQL["changes"], asked).fetchall()
        return Limits(
            service_changes=tuple(from_us(at) for (at,) in of_service),
            all_changes=tuple(from_us(at) for at, _ in of_all),
            services=tuple(of for _, of in of_all),
        )

    def kill_switch(self) -> KillSwitch:
        """Read the switch; off where nobody ever touched it."""
        with self._database.reading() as db:
            row = db.execute(SQL["kill_switch"]).fetchone()
        if row is None:
            return KillSwitch(on=False)
        is_on, by, why, at = row
        return KillSwitch(on=bool(is_on), by=by, why=why, at=None if at is None else from_us(at))

    def set_kill_switch(self, switch: KillSwitch) -> None:
        """Turn it on or off; see the port."""
        at = None if switch.at is None else to_us(switch.at)
        with self._database.writing() as db:
            db.execute(SQL["kill_switch_set"], {"is_on": int(switch.on), "who": switch.by, "why": switch.why, "at": at})

    def acquire(self, name: str, holder: str, *, for_s: float, now: datetime) -> Lease | None:
        """Take or renew a lease; see the port."""
        with self._database.writing() as db:
            db.execute(SQL["latest_raise"], {"at": to_us(now)})
            at = _later(db, now)
            found = db.execute(SQL["lease"], {"name": name}).fetchone()
            held_by, token, ends_at = found or ("", 0, 0)
            if ends_at <= at:
                token += 1
            elif held_by != holder:
                return None
            until = at + round(for_s * 1_000_000)
            db.execute(SQL["lease_set"], {"name": name, "holder": holder, "token": token, "ends_at": until})
        return Lease(name=name, holder=holder, token=token, until=from_us(until))

    def holds(self, lease: Lease, now: datetime) -> bool:
        """Whether the lease is still the newest one and not over; see the port."""
        with self._database.reading() as db:
            found = db.execute(SQL["lease"], {"name": lease.name}).fetchone()
            at = _later(db, now)
        return found is not None and found[:2] == (lease.holder, lease.token) and at < found[2]

    def release(self, lease: Lease) -> None:
        """Give it back early; a lease that somebody else took meanwhile stays theirs."""
        with self._database.writing() as db:
            db.execute(SQL["lease_release"], {"name": lease.name, "token": lease.token})

    def append(self, *, at: datetime, kind: str, incident: str, who: str, body: str, once: bool = False) -> AuditRow:
        """Add a row to the record; see the port."""
        with self._database.writing() as db:
            newest = [_audit_row(r) for r in db.execute(SQL["audit_newest"], {"limit": REPEATS if once else 1})]
            same = existing_row(newest, kind=kind, incident=incident, who=who, body=body) if once else None
            if same is not None:
                return same
            row = next_row(newest[0] if newest else None, at=at, kind=kind, incident=incident, who=who, body=body)
            db.execute(SQL["audit_add"], dict(row) | {"at": to_us(row.at)})
        return row

    def audit(self, limit: int = 1000, *, before: int | None = None) -> tuple[AuditRow, ...]:
        """Return the newest rows of the record, oldest first; see the port."""
        with self._database.reading() as db:
            rows = db.execute(SQL["audit_before"], {"limit": limit, "before": before}).fetchall()
        return tuple(_audit_row(row) for row in reversed(rows))


def _first_intent(db: sqlite3.Connection, intent: Intent) -> Intent:
    """Store an intent, or return the one that stands; asked inside the transaction that found it not closed."""
    db.execute(SQL["intent_add"], {"effect": intent.key, "body": to_text(intent)})
    return from_text(Intent, db.execute(SQL["intent"], {"effect": intent.key}).fetchone()[0])


def _begun_count(db: sqlite3.Connection) -> int:
    return int(db.execute(SQL["begun_count"]).fetchone()[0])


def _has(db: sqlite3.Connection, rate_limit: RateLimit, intent: Intent) -> bool:
    """Whether one more change may start; asked inside the transaction that records it."""
    service, now = intent.service, rate_limit.counted_at(intent.applied_at)
    window, hour = to_us(now - timedelta(seconds=rate_limit.window_s)), to_us(now - timedelta(hours=1))
    own = db.execute(SQL["changes_of_service"], {"service": service, "since": window + 1}).fetchone()
    recent = db.execute(SQL["changes"], {"since": hour + 1}).fetchall()
    return own is None and rate_limit.allows([of for _, of in recent])


def _later(db: sqlite3.Connection, now: datetime) -> int:
    """The later of ``now`` and the highest time that a holder brought, microseconds."""
    row = db.execute(SQL["latest"]).fetchone()
    return max(to_us(now), row[0] if row else 0)


def _audit_row(row: tuple[int, int, str, str, str, str, str]) -> AuditRow:
    number, at, kind, incident, who, body, chain = row
    return AuditRow(number=number, at=from_us(at), kind=kind, incident=incident, who=who, body=body, chain=chain)
