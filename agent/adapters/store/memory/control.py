"""The control database in memory: for tests, simulations and replays that keep nothing."""

from datetime import UTC, datetime, timedelta
from typing import Final

from agent.adapters.store.memory.mark import MemoryMark
from agent.core.change.execution import Intent
from agent.core.change.request import ChangeRequest
from agent.core.decision.audit import REPEATS, AuditRow, existing_row, next_row
from agent.core.decision.decision import Ballot
from agent.core.intake.signal import later
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

_OVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
FORGOTTEN_AFTER: Final = timedelta(hours=1)  # after its end, so that a clock that steps back finds a name still used


class MemoryControlStore(MemoryMark):
    """Keeps the promises of :class:`agent.ports.control.ControlStore` until the process ends."""

    def __init__(self) -> None:
        super().__init__()
        self._claims: dict[str, str] = {}
        self._requests: dict[str, ChangeRequest] = {}
        self._ballots: dict[str, Ballot] = {}  # by digest of the plan
        self._receipts: dict[str, tuple[str, str, datetime]] = {}  # effect, service, time by decision
        self._switch = KillSwitch(on=False)
        self._intents: dict[str, Intent] = {}
        self._closed: dict[str, str] = {}
        self._leases: dict[str, Lease] = {}
        self._latest: datetime | None = None
        self._used: dict[str, datetime] = {}
        self._audit: list[AuditRow] = []

    def claim(self, incident: str, plan: str, decision_id: str) -> str:  # noqa: ARG002 - a plan's id is enough here
        """Record the first decision of a plan; see the port."""
        with self._lock:
            return self._claims.setdefault(plan, decision_id)

    def add_request(self, request: ChangeRequest) -> ChangeRequest:
        """Record a change request; see the port."""
        with self._lock:
            return self._requests.setdefault(request.id, request)

    def change_request(self, request_id: str) -> ChangeRequest | None:
        """Return a recorded change request; see the port."""
        with self._lock:
            return self._requests.get(request_id)

    def ballot(self, plan_digest: str) -> Ballot | None:
        """Return the votes about a plan; see the port."""
        with self._lock:
            return self._ballots.get(plan_digest)

    def cast(self, ballot: Ballot, *, before: Ballot | None, decision: str | None = None) -> CastResult:
        """Replace the votes about a plan; see the port."""
        with self._lock:
            held = self._claims.get(ballot.plan)
            if held is not None:
                return CastResult(outcome=CastOutcome.DECIDED, decision=held)
            if self._ballots.get(ballot.plan_digest) != before:
                return CastResult(outcome=CastOutcome.STALE)
            self._ballots[ballot.plan_digest] = ballot
            if decision is not None:
                self._claims[ballot.plan] = decision
            return CastResult(outcome=CastOutcome.CAST, decision=decision or "")

    def begin(
        self, intent: Intent, *, rate_limit: RateLimit | None = None, begun_before: int | None = None
    ) -> BeginResult:
        """Use a receipt and store the intent; see the port."""
        with self._lock:
            if intent.key in self._closed:
                return BeginResult(use=ReceiptUse.CLOSED)
            held = self._receipts.get(intent.decision)
            if held is not None and held[0] != intent.key:
                return BeginResult(use=ReceiptUse.SPENT)
            if held is None and rate_limit is not None and not self._has(rate_limit, intent):
                return BeginResult(use=ReceiptUse.RATE_LIMITED)
            if held is None and begun_before is not None and len(self._receipts) != begun_before:
                return BeginResult(use=ReceiptUse.STALE)
            self._receipts.setdefault(intent.decision, (intent.key, intent.service, intent.applied_at))
            return BeginResult(use=ReceiptUse.OURS, intent=self._intents.setdefault(intent.key, intent))

    def begun(self, since: datetime) -> BegunChanges:
        """Return the changes that were begun; see the port."""
        with self._lock:
            late = sorted((at, effect) for effect, _, at in self._receipts.values() if at >= since)
            intents = tuple(self._intents[effect] for _, effect in late if effect not in self._closed)
            return BegunChanges(count=len(self._receipts), intents=intents)

    def add_intent(self, intent: Intent) -> Intent | None:
        """Store the intent of a further effect; see the port."""
        with self._lock:
            return None if intent.key in self._closed else self._intents.setdefault(intent.key, intent)

    def intent(self, key: str) -> Intent | None:
        """Return the stored intent of an effect; see the port."""
        with self._lock:
            held = self._intents.get(key)
            return None if held is None else held.with_(closed=self._closed.get(key, ""))

    def close_intent(self, key: str, why: str) -> None:
        """Close an effect for good; see the port."""
        with self._lock:
            self._closed.setdefault(key, why)

    def _has(self, rate_limit: RateLimit, intent: Intent) -> bool:
        service, now = intent.service, rate_limit.counted_at(intent.applied_at)
        window, hour = now - timedelta(seconds=rate_limit.window_s), now - timedelta(hours=1)
        uses = [(of, at) for _, of, at in self._receipts.values()]
        lately = [of for of, at in uses if at > hour]
        return rate_limit.allows(lately) and not any(of == service and at > window for of, at in uses)

    def use_once(self, name: str, *, at: datetime, until: datetime) -> bool:
        """Record that something happens once; see the port."""
        with self._lock:
            self._used = {n: ends for n, ends in self._used.items() if ends > at - FORGOTTEN_AFTER}
            first = name not in self._used
            self._used.setdefault(name, until)
            return first

    def give_back(self, name: str) -> None:
        """Forget a use; see the port."""
        with self._lock:
            self._used.pop(name, None)

    def limits(self, service: str, since: datetime) -> Limits:
        """Return the changes since a time, oldest first; see the port."""
        with self._lock:
            uses = sorted((at, of) for _, of, at in self._receipts.values() if at >= since)
        return Limits(
            service_changes=tuple(at for at, of in uses if of == service),
            all_changes=tuple(at for at, _ in uses),
            services=tuple(of for _, of in uses),
        )

    def kill_switch(self) -> KillSwitch:
        """Read the switch; off where nobody ever touched it."""
        with self._lock:
            return self._switch

    def set_kill_switch(self, switch: KillSwitch) -> None:
        """Turn it on or off; see the port."""
        with self._lock:
            self._switch = switch

    def acquire(self, name: str, holder: str, *, for_s: float, now: datetime) -> Lease | None:
        """Take or renew a lease; see the port."""
        with self._lock:
            at = self._latest = later(now, self._latest) or now
            held = self._leases.get(name)
            running = held is not None and at < held.until
            if held is not None and running and held.holder != holder:
                return None
            token = held.token + (0 if running else 1) if held is not None else 1
            lease = Lease(name=name, holder=holder, token=token, until=at + timedelta(seconds=for_s))
            self._leases[name] = lease
            return lease

    def holds(self, lease: Lease, now: datetime) -> bool:
        """Whether the lease is still the newest one and not over; see the port."""
        with self._lock:
            held = self._leases.get(lease.name)
            at = later(now, self._latest) or now
        ours = held is not None and (held.holder, held.token) == (lease.holder, lease.token)
        return ours and held is not None and at < held.until

    def release(self, lease: Lease) -> None:
        """Give it back early; a lease that somebody else took meanwhile stays theirs."""
        with self._lock:
            held = self._leases.get(lease.name)
            if held is not None and held.token == lease.token:
                self._leases[lease.name] = held.with_(until=_OVER)

    def append(self, *, at: datetime, kind: str, incident: str, who: str, body: str, once: bool = False) -> AuditRow:
        """Add a row to the record; see the port."""
        with self._lock:
            same = (
                existing_row(self._audit[-REPEATS:], kind=kind, incident=incident, who=who, body=body) if once else None
            )
            if same is not None:
                return same
            last = self._audit[-1] if self._audit else None
            row = next_row(last, at=at, kind=kind, incident=incident, who=who, body=body)
            self._audit.append(row)
            return row

    def audit(self, limit: int = 1000, *, before: int | None = None) -> tuple[AuditRow, ...]:
        """Return the newest rows of the record, oldest first; see the port."""
        with self._lock:
            return tuple(row for row in self._audit if before is None or row.number < before)[-limit:]
