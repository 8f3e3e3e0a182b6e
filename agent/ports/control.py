"""The control database: kill switch, used receipts, limits, prior templates, leases, and the record of it all."""

from datetime import datetime
from typing import Protocol

from pydantic import AwareDatetime

from agent.core.audit import AuditRow
from agent.core.value import Value


class Limits(Value):
    """Changes that were started lately, for the limits."""

    service_changes: tuple[AwareDatetime, ...] = ()
    all_changes: tuple[AwareDatetime, ...] = ()


class KillSwitch(Value):
    """Whether changes are stopped, by whom and why."""

    on: bool
    by: str = ""
    why: str = ""
    at: AwareDatetime | None = None


class Lease(Value):
    """The right to work on something until a time; ``token`` grows with every holder."""

    name: str
    holder: str
    token: int
    until: AwareDatetime


class ControlStore(Protocol):
    """What stands between an approval and an effect. Doubt refuses: unreadable means no."""

    def claim(self, incident: str, plan: str, decision: str) -> str:
        """Record the first decision of a plan (its whole JSON); return the one that is held, ours or the winner's."""
        ...

    def use_receipt(self, decision_id: str, effect_key: str, *, service: str, at: datetime) -> bool:
        """Record that a receipt starts an effect and count it for the limits, in one transaction.

        Returns:
            True at its first use and at every repetition by the same effect; False for any other effect.
        """
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

    def keep_prior(self, effect_key: str, template: str, traffic: str) -> None:
        """Keep what stood before an effect; the first one written stays."""
        ...

    def prior(self, effect_key: str) -> tuple[str, str] | None:
        """Return template and traffic as they were before an effect."""
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

    def append(self, *, at: datetime, kind: str, incident: str, who: str, body: str) -> AuditRow:
        """Add a row to the record."""
        ...

    def audit(self, limit: int = 1000) -> tuple[AuditRow, ...]:
        """Return the newest ``limit`` rows of the record, oldest first; see :func:`agent.core.audit.verify`."""
        ...
