"""The control database: requests, kill switch, used receipts, limits, intents of effects, leases, and the record."""

import time
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from pydantic import AwareDatetime

from agent.core.change.execution import Intent
from agent.core.change.request import ChangeRequest
from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Ballot
from agent.core.decision.selector import selects
from agent.core.value import Value
from agent.ports.clock import Clock
from agent.ports.store import MarkStore


class Limits(Value):
    """Changes that were started recently, for the limits; ``services`` names the service of each of ``all_changes``."""

    service_changes: tuple[AwareDatetime, ...] = ()
    all_changes: tuple[AwareDatetime, ...] = ()
    services: tuple[str, ...] = ()

    @property
    def by_service(self) -> tuple[tuple[datetime, str], ...]:
        """When each of all changes began, and of which service."""
        return tuple(zip(self.all_changes, self.services, strict=True))


class GroupRate(Value):
    """How many changes of the services of a group may be started in an hour; ``services`` are patterns."""

    services: tuple[str, ...]
    per_hour: int


class RateLimit(Value):
    """How many changes may be started: one of a service in ``window_s`` seconds, ``per_hour`` over all.

    Attributes:
        groups: Limits of groups to which the service belongs, beside those over all.
        not_after: The time by which earlier changes are old enough, where that of the intent is later.
    """

    window_s: float
    per_hour: int
    groups: tuple[GroupRate, ...] = ()
    not_after: datetime | None = None

    def counted_at(self, applied_at: datetime) -> datetime:
        """Return the time from which window and hour are counted back."""
        return applied_at if self.not_after is None else min(applied_at, self.not_after)

    def allows(self, recent: Sequence[str]) -> bool:
        """Whether one more change keeps the hourly limits.

        Args:
            recent: The service of each change of the last hour.
        """
        of_groups = ((sum(selects(g.services, name) for name in recent), g.per_hour) for g in self.groups)
        return len(recent) < self.per_hour and all(count < most for count, most in of_groups)


class CastOutcome(StrEnum):
    """What became of a vote."""

    CAST = "cast"  # it is recorded, and with it the decision that it made
    STALE = "stale"  # others voted meanwhile; nothing was recorded
    DECIDED = "decided"  # the plan was decided before; nothing was recorded


class CastResult(Value):
    """What became of a vote; ``decision`` is the one that is held where the plan is decided, else empty."""

    outcome: CastOutcome
    decision: str = ""


class ReceiptUse(StrEnum):
    """What became of a receipt that was to start an effect."""

    OURS = "ours"  # it starts this effect, now or when it was tried before
    SPENT = "spent"  # another effect used it
    RATE_LIMITED = "rate_limited"  # too many changes recently; nothing was recorded
    STALE = "stale"  # others began since the caller looked; nothing was recorded
    CLOSED = "closed"  # the effect was refused before; nothing was recorded


class BeginResult(Value):
    """What became of a change that was to begin; ``intent`` is the stored one where it is OURS, else None."""

    use: ReceiptUse
    intent: Intent | None = None


class BegunChanges(Value):
    """The changes that were begun: how many ever, and the intents of the late ones that were not refused since."""

    count: int
    intents: tuple[Intent, ...] = ()


class KillSwitch(Value):
    """Whether changes are stopped, by whom and why."""

    on: bool
    by: str = ""
    why: str = ""
    at: AwareDatetime | None = None

    @property
    def says(self) -> str:
        """Who stopped changes, and why; nothing where they may go on."""
        said = f"the kill switch is on (by {self.by or 'somebody'}: {self.why or 'no reason given'})"
        return said if self.on else ""


class Lease(Value):
    """The right to work on something until a time; ``token`` grows with every holder."""

    name: str
    holder: str
    token: int
    until: AwareDatetime


class LeaseEnd:
    """The end of a lease, by the clock by which it was taken: whoever stood still finds it over.

    Args:
        lease: The lease.
        clock: Never earlier than the highest stored time, so that it knows of whoever took the lease since and wrote.
    """

    def __init__(self, lease: Lease, clock: Clock) -> None:
        self.lease = lease
        self._clock = clock

    def left_s(self) -> float:
        """Return the seconds that are left, 0 or less where it is over; what the clock takes to answer counts too.

        Raises:
            DependencyFailed: The clock does not tell.
        """
        began = time.monotonic()
        left = self.lease.until - self._clock.now()
        return left.total_seconds() - (time.monotonic() - began)


class ControlStore(MarkStore, Protocol):
    """What stands between an approval and an effect. Doubt refuses: unreadable means no."""

    def claim(self, incident: str, plan: str, decision: str) -> str:
        """Record the first decision of a plan (its whole JSON); return the one that is held, ours or the winner's."""
        ...

    def add_request(self, request: ChangeRequest) -> ChangeRequest:
        """Record a signed change request; return the one with that id that was recorded first, ours or an earlier."""
        ...

    def change_request(self, request_id: str) -> ChangeRequest | None:
        """Return a recorded change request as it was signed; None where nobody asked for it."""
        ...

    def ballot(self, plan_digest: str) -> Ballot | None:
        """Return the votes about the plan of that digest; None where nobody voted."""
        ...

    def cast(self, ballot: Ballot, *, before: Ballot | None, decision: str | None = None) -> CastResult:
        """Replace the votes about a plan, and record with them the decision that they make, in one transaction.

        Nothing is recorded where the votes are not ``before`` any more, or the plan was claimed by whatever decision:
        so the last vote makes the one decision, and no vote is added or taken back after it. Where the answer was
        lost, the same call finds its own votes and says STALE, or DECIDED with its own decision.
        """
        ...

    def begin(
        self, intent: Intent, *, rate_limit: RateLimit | None = None, begun_before: int | None = None
    ) -> BeginResult:
        """Use the receipt of ``intent.decision``, count the change and store the intent, in one transaction.

        Of racing executors no more than ``rate_limit`` allows get OURS: who looks and who writes are one. A change
        counts against others while ``applied_at`` is less than the window (the hour) after it, and when it lies in the
        future. With ``begun_before``, the ``count`` of :meth:`begun`, it is STALE where any other began since: so what
        was checked against the changes that had begun is still true when this one begins. A repetition by the same
        effect needs neither, is counted once, and gets the intent that was stored first, never a newer one.
        """
        ...

    def begun(self, since: datetime) -> BegunChanges:
        """Return how many changes were begun, and the open intents of those that began at ``since`` or later.

        The count is no newer than the intents: a change that is not among them makes ``begin`` with this count STALE.
        """
        ...

    def add_intent(self, intent: Intent) -> Intent | None:
        """Store the intent of an effect that follows a begun change; return the one stored first, None if closed."""
        ...

    def intent(self, key: str) -> Intent | None:
        """Return the stored intent of an effect, closed or not; None where there is none."""
        ...

    def close_intent(self, key: str, why: str) -> None:
        """Close an effect for good, whether its intent is stored or not; the first reason stays."""
        ...

    def use_once(self, name: str, *, at: datetime, until: datetime) -> bool:
        """Record that something may happen once, such as a signed request; True for the first who asks, ever.

        Names are forgotten some time after ``until``, when nothing that bears them is accepted any more.
        """
        ...

    def give_back(self, name: str) -> None:
        """Forget a name whose use came to nothing, so that the sender may try again with it."""
        ...

    def limits(self, service: str, since: datetime) -> Limits:
        """Return the changes since a time."""
        ...

    def kill_switch(self) -> KillSwitch:
        """Read the switch.

        Raises:
            DependencyFailed: Unknown; the caller treats it as on.
        """
        ...

    def set_kill_switch(self, switch: KillSwitch) -> None:
        """Turn it on or off."""
        ...

    def acquire(self, name: str, holder: str, *, for_s: float, now: datetime) -> Lease | None:
        """Take or renew a lease; None while another holds it.

        A renewal before the end keeps its token; after the end even the same holder gets a new one. Time is the later
        of ``now`` and the highest that any holder brought.
        """
        ...

    def holds(self, lease: Lease, now: datetime) -> bool:
        """Whether the lease is still the newest one and not over: asked right before an effect."""
        ...

    def release(self, lease: Lease) -> None:
        """Give it back early."""
        ...

    def append(self, *, at: datetime, kind: str, incident: str, who: str, body: str, once: bool = False) -> AuditRow:
        """Add a row to the record.

        With ``once`` nothing is added where the newest rows hold these very words, whoever wrote them; that row is
        returned. Who tries again, or does the same at the same moment, leaves no second row.
        """
        ...

    def audit(self, limit: int = 1000, *, before: int | None = None) -> tuple[AuditRow, ...]:
        """Return the newest ``limit`` rows of the record, oldest first; see :func:`agent.core.decision.audit.verify`.

        With ``before`` those whose number is below it, so that a long record can be read piece by piece.
        """
        ...
