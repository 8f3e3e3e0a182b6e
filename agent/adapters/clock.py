"""The clock of the machine, never earlier than the highest time that was stored."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from agent.ports.clock import Clock


class SystemClock:
    """The machine's own time; it may step."""

    def now(self) -> datetime:
        """Return the machine's time, UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the adapter behind the port


def boot_time_s() -> float:
    """Return the seconds since the machine started, those in which it slept included where the system counts them."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class StoredClock:
    """The later of a clock and the highest stored time, which goes on while the clock has been set back.

    After a step back nothing lives longer and nothing is older. With ``monotonic`` time does not stand still until the
    clock has caught up, so that what waits for a time still comes to its end.

    Args:
        clock: Usually the machine's.
        latest: Reads the highest stored time, such as ``SqliteStore.latest_time``; None where nothing is stored.
        monotonic: Counts seconds and cannot be set; None where time may only move with ``clock``.
    """

    def __init__(
        self,
        clock: Clock,
        latest: Callable[[], datetime | None],
        *,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._latest = latest
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._given: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the later time.

        Raises:
            DependencyFailed: The store does not answer; a time that may be wrong is not given out.
        """
        stored = self._latest()
        with self._lock:
            now = self._clock.now() if stored is None else max(self._clock.now(), stored)
            if self._monotonic is None:
                return now
            ticks = self._monotonic()
            if self._given is not None:
                then, at = self._given
                now = max(now, then + timedelta(seconds=max(ticks - at, 0.0)))
            self._given = (now, ticks)
            return now

    def behind_s(self) -> float:
        """Return by how many seconds the machine's clock lags behind; see the port."""
        return max((self.now() - self._clock.now()).total_seconds(), 0.0)


class ServerClock:
    """The server time of a store: asked for once in a while, counted on in between; the machine's clock has no say.

    Args:
        server: Asks for it; the highest stored time where that is later.
        machine: The machine's clock, to say how far it is off.
        every_s: For so long the last answer is counted on.
        monotonic: Counts seconds and cannot be set.
    """

    def __init__(
        self,
        server: Callable[[], datetime],
        machine: Clock,
        *,
        every_s: float,
        monotonic: Callable[[], float] = boot_time_s,
    ) -> None:
        self._server = server
        self._machine = machine
        self._every_s = every_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._asked: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the server's time.

        Raises:
            DependencyFailed: The store does not answer; a time that may be wrong is not given out.
        """
        with self._lock:
            ticks = self._monotonic()
            counted = None
            if self._asked is not None:
                then, at = self._asked
                counted = then + timedelta(seconds=ticks - at)
                if ticks - at < self._every_s:
                    return counted
            server = self._server()
            now = server if counted is None else max(server, counted)
            self._asked = (now, ticks)
            return now

    def behind_s(self) -> float:
        """Return how many seconds the machine's clock lags behind, by the last answer of the server; it asks nobody."""
        with self._lock:
            if self._asked is None:
                return 0.0
            then, at = self._asked
            counted = then + timedelta(seconds=self._monotonic() - at)
        return max((counted - self._machine.now()).total_seconds(), 0.0)
