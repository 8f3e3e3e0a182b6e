"""The clock: time as the stages see it."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time; may step, so that every stage takes the later of it and the time already stored."""

    def now(self) -> datetime:
        """Return the time, UTC and aware."""
        ...
