"""Leases under which orders of tests are carried out."""

from datetime import UTC, datetime, timedelta
from typing import Final

from agent.ports.control import Lease, LeaseEnd

T0: Final = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


class Hands:
    """A clock of the holder of a lease; it stands until a test moves it."""

    def __init__(self) -> None:
        self.time = T0

    def now(self) -> datetime:
        return self.time


def lease_end(seconds: float = 120, clock: Hands | None = None) -> LeaseEnd:
    """Return the end of a lease that has so many seconds left."""
    lease = Lease(name="service/gemma", holder="a test", token=1, until=T0 + timedelta(seconds=seconds))
    return LeaseEnd(lease, clock or Hands())


HELD: Final = lease_end()
"""Of a lease that lasts."""
