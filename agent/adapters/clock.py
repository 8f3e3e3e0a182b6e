"""The clock of the machine, never earlier than the highest time that was stored."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from agent.ports.clock import Clock


class SystemClock:
    """The machine's own time; it may step."""

    def now(self) -> datetime:
        """Return the machine's time, UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the adapter behind the port


class StoredClock:
    """The later of a clock and the highest stored time: after a step back, nothing lives longer and nothing is older.

    Args:
        clock: Usually the machine's.
        latest: Reads the highest stored time, such as ``SqliteStore.latest_time``; None where nothing is stored.
    """

    def __init__(self, clock: Clock, latest: Callable[[], datetime | None]) -> None:
        self._clock = clock
        self._latest = latest

    def now(self) -> datetime:
        """Return the later time.

        Raises:
            DependencyFailed: The store does not answer; a time that may be wrong is not given out.
        """
        here = self._clock.now()
        stored = self._latest()
        return here if stored is None else max(here, stored)


def now_and_then(latest: Callable[[], datetime | None], *, every_s: float) -> Callable[[], datetime | None]:
    """Return what reads the highest stored time once in a while; it only grows, so an older answer is a lower bound.

    Args:
        latest: Reads it.
        every_s: For so long the last answer is given again.
    """
    held: list[tuple[float, datetime | None]] = []

    def remembered() -> datetime | None:
        now = time.monotonic()
        if not held or now - held[-1][0] >= every_s:
            held[:] = [(now, latest())]
        return held[-1][1]

    return remembered
