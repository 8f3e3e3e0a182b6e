"""How long the parts of an incident's life may take."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import Field

from agent.core.value import Value

if TYPE_CHECKING:  # settings hold these times, and are read by commands that know no incident
    from agent.core.incident.incident import Incident


class Times(Value):
    """How long things may take; the defaults of the design.

    ``compression`` divides the waits of a rehearsal, and every screen says so.

    Attributes:
        renotify_s: After how long people are told again of what waits for them and nobody took note of.
        renotify_times: How often at most; 0 is never.
    """

    quiet_s: float = 20
    settle_s: float = 60
    approval_s: float = 1800
    cool_off_s: float = 86_400
    verify_s: float = 600
    poll_s: float = 10
    lease_s: float = 120
    renotify_s: float = 900
    renotify_times: int = Field(default=3, ge=0, le=10)
    rollout_limit_s: float = Field(default=3600, description="a rollout without an end by then is INCONCLUSIVE")

    def settled(self, incident: "Incident", now: datetime) -> bool:
        """Whether a plan may be offered: certain, or quiet long enough, or waited long enough."""
        if incident.diagnosis is not None and incident.diagnosis.certain:
            return True
        return now >= self.settles_at(incident)

    def settles_at(self, incident: "Incident") -> datetime:
        """Return when the incident counts as settled if no further signal arrives."""
        quiet = incident.quiet_since + timedelta(seconds=self.quiet_s)
        return min(quiet, incident.opened_at + timedelta(seconds=self.settle_s))
