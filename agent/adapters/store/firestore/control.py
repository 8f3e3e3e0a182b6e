"""The control database: a Firestore database of its own, that only the deciding and executing functions may write.

Layout: ``requests/ID``, ``claims/PLAN``, ``ballots/DIGEST``, ``receipts/DECISION`` guarded by ``locks/receipts``,
``intents/EFFECT``, ``closed/EFFECT``, ``used/NAME``, ``switch/kill``, ``leases/NAME``, ``audit/NUMBER``;
``priors/EFFECT`` of changes from before intents.
"""

from datetime import datetime, timedelta
from typing import Final

from agent.adapters.store.firestore.documents import Data, Found, Write, document_path, until_alone
from agent.adapters.store.firestore.mark import FirestoreMark
from agent.adapters.store.row_json import from_text, from_us, to_text, to_us
from agent.core.change.execution import EffectKind, Intent
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

CONTROL_INDEXES: Final = (("receipts", (("service", "ASCENDING"), ("at", "ASCENDING"))),)
"""Composite indexes of the control database that Terraform makes."""

CONTROL_TTL_FIELD: Final = "kept_until"
"""Of ``used``; a name that still stands counts as used, whether its time is over or not."""

FORGOTTEN_AFTER: Final = timedelta(hours=1)
_LOCK: Final = "locks/receipts"  # its stamp moves with every change that begins


class FirestoreControlStore(FirestoreMark):
    """Keeps the promises of :class:`agent.ports.control.ControlStore`.

    Args:
        documents: The control database; another one than the incidents'.
    """

    def claim(self, incident: str, plan: str, decision: str) -> str:
        """Record the first decision of a plan; see the port."""
        claim = {"incident": incident, "decision": decision}
        return str(self._documents.first(document_path("claims", plan), claim)["decision"])

    def add_request(self, request: ChangeRequest) -> ChangeRequest:
        """Record a change request; see the port."""
        held = self._documents.first(document_path("requests", request.id), {"body": to_text(request)})
        return from_text(ChangeRequest, held["body"])

    def change_request(self, request_id: str) -> ChangeRequest | None:
        """Return a recorded change request; see the port."""
        found = self._documents.get(document_path("requests", request_id))
        return from_text(ChangeRequest, found.data["body"]) if found is not None else None

    def ballot(self, plan_digest: str) -> Ballot | None:
        """Return the votes about a plan; see the port."""
        found = self._documents.get(document_path("ballots", plan_digest))
        return from_text(Ballot, found.data["body"]) if found is not None else None

    def cast(self, ballot: Ballot, *, before: Ballot | None, decision: str | None = None) -> CastResult:
        """Replace the votes about a plan; see the port.

        A vote that makes no decision looks at the claim once more after it was written: a rejection in between, which
        writes the claim alone, has won.
        """
        path, claim = document_path("ballots", ballot.plan_digest), document_path("claims", ballot.plan)

        def attempt() -> CastResult:
            found = self._documents.get_all([path, claim])
            stored, claimed = found[path], found[claim]
            if claimed is not None:
                return CastResult(outcome=CastOutcome.DECIDED, decision=str(claimed.data["decision"]))
            if (from_text(Ballot, stored.data["body"]) if stored is not None else None) != before:
                return CastResult(outcome=CastOutcome.STALE)
            writes = [_guarded(path, {"body": to_text(ballot)}, stored)]
            if decision is not None:
                data: Data = {"incident": ballot.incident, "decision": decision}
                writes.append(Write(path=claim, data=data, absent=True))
            self._documents.write(writes)
            won = self._documents.get(claim) if decision is None else None
            if won is not None:
                return CastResult(outcome=CastOutcome.DECIDED, decision=str(won.data["decision"]))
            return CastResult(outcome=CastOutcome.CAST, decision=decision or "")

        return until_alone(attempt, self._documents.name)

    def begin(
        self, intent: Intent, *, rate_limit: RateLimit | None = None, begun_before: int | None = None
    ) -> BeginResult:
        """Use a receipt and store the intent; see the port.

        Who looks for room holds the stamp of one lock document, and every use writes it: of two who saw the same room
        one finds the stamp changed, and looks again.
        """
        path, own = document_path("receipts", intent.decision), document_path("intents", intent.key)
        lock, closed = _LOCK, document_path("closed", intent.key)

        def attempt() -> BeginResult:
            found = self._documents.get_all([path, lock, own, closed])
            held, locked, stored = found[path], found[lock], found[own]
            if found[closed] is not None:
                return BeginResult(use=ReceiptUse.CLOSED)
            if held is not None and held.data["effect"] != intent.key:
                return BeginResult(use=ReceiptUse.SPENT)
            if held is not None and stored is not None:
                return BeginResult(use=ReceiptUse.OURS, intent=from_text(Intent, stored.data["body"]))
            if held is None and rate_limit is not None and not self._has(rate_limit, intent):
                return BeginResult(use=ReceiptUse.RATE_LIMITED)
            uses = _uses(locked)
            if held is None and begun_before is not None and uses != begun_before:
                return BeginResult(use=ReceiptUse.STALE)
            use: Data = {"effect": intent.key, "service": intent.service, "at": to_us(intent.applied_at)}
            stamp = locked.stamp if locked is not None else None
            writes = [
                Write(path=lock, data={"uses": uses + 1}, absent=locked is None, stamp=stamp),
                Write(path=own, data={"body": to_text(intent)}, absent=True),
            ]
            if held is None:
                writes.append(Write(path=path, data=use, absent=True))
            self._documents.write(writes)
            return BeginResult(use=ReceiptUse.OURS, intent=intent)

        return until_alone(attempt, self._documents.name)

    def begun(self, since: datetime) -> BegunChanges:
        """Return the changes that were begun; see the port."""
        count = _uses(self._documents.get(_LOCK))  # first: whatever begins while the rest is read makes it stale
        late = self._documents.select("receipts", where=(("at", ">=", to_us(since)),), order=(("at", False),))
        effects = [str(found.data["effect"]) for found in late]
        own, closed = ([document_path(name, effect) for effect in effects] for name in ("intents", "closed"))
        found = self._documents.get_all([*own, *closed]) if effects else {}
        still_open = (found[path] for path, end in zip(own, closed, strict=True) if found[end] is None)
        intents = tuple(from_text(Intent, stored.data["body"]) for stored in still_open if stored is not None)
        return BegunChanges(count=count, intents=intents)

    def add_intent(self, intent: Intent) -> Intent | None:
        """Store the intent of a further effect; see the port."""
        self._documents.create(document_path("intents", intent.key), {"body": to_text(intent)})
        stored = self.intent(intent.key)
        return stored if stored is not None and not stored.closed else None

    def intent(self, key: str) -> Intent | None:
        """Return the stored intent of an effect; see the port."""
        own, closed, prior = (document_path(name, key) for name in ("intents", "closed", "priors"))
        found = self._documents.get_all([own, closed, prior])
        stored, ended, before = found[own], found[closed], found[prior]
        intent = None
        if stored is not None:
            intent = from_text(Intent, stored.data["body"])
        elif before is not None:
            intent = self._from_before(key, before)
        if intent is None:
            return None
        return intent.with_(closed=str(ended.data["why"]) if ended is not None else "")

    def close_intent(self, key: str, why: str) -> None:
        """Close an effect for good; see the port."""
        self._documents.create(document_path("closed", key), {"why": why})

    def use_once(self, name: str, *, at: datetime, until: datetime) -> bool:  # noqa: ARG002 - the TTL forgets, not we
        """Record that something happens once; see the port."""
        return self._documents.create(document_path("used", name), {CONTROL_TTL_FIELD: until + FORGOTTEN_AFTER})

    def give_back(self, name: str) -> None:
        """Forget a use; see the port."""
        self._documents.write([Write(path=document_path("used", name), data=None)])

    def limits(self, service: str, since: datetime) -> Limits:
        """Return the changes since a time, oldest first; see the port."""
        found = self._documents.select("receipts", where=(("at", ">=", to_us(since)),), order=(("at", False),))
        return Limits(
            service_changes=tuple(from_us(f.data["at"]) for f in found if f.data["service"] == service),
            all_changes=tuple(from_us(f.data["at"]) for f in found),
            services=tuple(str(f.data["service"]) for f in found),
        )

    def kill_switch(self) -> KillSwitch:
        """Read the switch; off where nobody ever touched it."""
        found = self._documents.get("switch/kill")
        if found is None:
            return KillSwitch(on=False)
        at = found.data["at"]
        return KillSwitch(
            on=found.data["on"],
            by=found.data["by"],
            why=found.data["why"],
            at=None if at is None else from_us(at),
        )

    def set_kill_switch(self, switch: KillSwitch) -> None:
        """Turn it on or off; see the port."""
        at = None if switch.at is None else to_us(switch.at)
        self._documents.put("switch/kill", {"on": switch.on, "by": switch.by, "why": switch.why, "at": at})

    def acquire(self, name: str, holder: str, *, for_s: float, now: datetime) -> Lease | None:
        """Take or renew a lease; see the port."""
        path = document_path("leases", name)

        def attempt() -> Lease | None:
            found = self._documents.get(path)
            at = max(to_us(now), self._highest())
            held: Data = found.data if found is not None else {"holder": "", "token": 0, "ends_at": 0}
            running = at < held["ends_at"]
            if running and held["holder"] != holder:
                self._bring(found, at)
                return None
            token = held["token"] + (0 if running else 1)
            until = at + round(for_s * 1_000_000)
            data: Data = {"holder": holder, "token": token, "ends_at": until, "brought": at}
            self._documents.write([_guarded(path, data, found)])
            return Lease(name=name, holder=holder, token=token, until=from_us(until))

        return until_alone(attempt, self._documents.name)

    def holds(self, lease: Lease, now: datetime) -> bool:
        """Whether the lease is still the newest one and not over; see the port."""
        found = self._documents.get(document_path("leases", lease.name))
        if found is None or (found.data["holder"], found.data["token"]) != (lease.holder, lease.token):
            return False
        return bool(max(to_us(now), self._highest()) < found.data["ends_at"])

    def release(self, lease: Lease) -> None:
        """Give it back early; a lease that somebody else took meanwhile stays theirs."""
        path = document_path("leases", lease.name)

        def attempt() -> None:
            found = self._documents.get(path)
            if found is not None and found.data["token"] == lease.token:
                self._documents.write([_guarded(path, {**found.data, "ends_at": 0}, found)])

        until_alone(attempt, self._documents.name)

    def append(self, *, at: datetime, kind: str, incident: str, who: str, body: str, once: bool = False) -> AuditRow:
        """Add a row to the record; see the port.

        Who writes holds the number that follows what was read: of two who do the same one finds it taken, looks again
        and sees the other's row. Without ``once``, a try whose answer was lost may leave the same words twice.
        """

        def attempt() -> AuditRow:
            newest = self.audit(REPEATS if once else 1)
            same = existing_row(newest, kind=kind, incident=incident, who=who, body=body) if once else None
            if same is not None:
                return same
            row = next_row(newest[-1] if newest else None, at=at, kind=kind, incident=incident, who=who, body=body)
            data: Data = {"number": row.number, "body": row.model_dump_json()}
            self._documents.write([Write(path=f"audit/{row.number:012d}", data=data, absent=True)])
            return row

        return until_alone(attempt, self._documents.name)

    def audit(self, limit: int = 1000, *, before: int | None = None) -> tuple[AuditRow, ...]:
        """Return the newest rows of the record, oldest first; see the port."""
        where = () if before is None else (("number", "<", before),)
        found = self._documents.select("audit", where=where, order=(("number", True),), limit=limit)
        return tuple(AuditRow.model_validate_json(f.data["body"]) for f in reversed(found))

    def _from_before(self, key: str, prior: Found) -> Intent | None:
        """Return the intent of a change that was begun before intents were kept: it can be undone, never applied."""
        used = self._documents.select("receipts", where=(("effect", "==", key),), limit=1)
        if not used:
            return None
        return Intent(
            key=key,
            kind=EffectKind.APPLY,
            incident="",
            service=str(used[0].data["service"]),
            decision="",
            plan_digest="",
            actions=(),
            target=None,
            etag="",
            revision="",
            prior_template=str(prior.data["template"]),
            prior_traffic=str(prior.data["traffic"]),
            applied_at=from_us(used[0].data["at"]),
        )

    def _has(self, rate_limit: RateLimit, intent: Intent) -> bool:
        service, now = intent.service, rate_limit.counted_at(intent.applied_at)
        window, hour = to_us(now - timedelta(seconds=rate_limit.window_s)), to_us(now - timedelta(hours=1))
        own = (("service", "==", service), ("at", ">", window))
        if self._documents.select("receipts", where=own, limit=1):
            return False
        most = max(rate_limit.per_hour, 1)  # more are not looked at: so many are too many already
        recent = self._documents.select("receipts", where=(("at", ">", hour),), limit=most)
        return rate_limit.allows([str(found.data["service"]) for found in recent])

    def _highest(self) -> int:
        """The highest time that any holder brought, microseconds."""
        found = self._documents.select("leases", order=(("brought", True),), limit=1, fields=("brought",))
        return int(found[0].data["brought"]) if found else 0

    def _bring(self, found: Found | None, at: int) -> None:
        """Keep the time that somebody brought who got nothing: time goes on for the holder too."""
        if found is not None and at > found.data["brought"]:
            path = f"leases/{found.id}"
            self._documents.write([_guarded(path, {**found.data, "brought": at}, found)])


def _uses(locked: Found | None) -> int:
    return int(locked.data["uses"]) if locked is not None else 0


def _guarded(path: str, data: Data, before: Found | None) -> Write:
    return Write(path=path, data=data, absent=before is None, stamp=before.stamp if before is not None else None)
