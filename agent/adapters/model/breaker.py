"""A circuit breaker: an endpoint that fails several times in a row rests, then one call tries whether it is back."""

import threading
from collections.abc import Callable

OPENS_AFTER = 3
RESTS_S = 30.0


class Breaker:
    """Counts failures in a row. For many threads.

    Args:
        clock: Seconds that only grow.
        opens_after: Failures in a row after which it opens.
        rests_s: Seconds for which nothing is let through; then one call is, and the next after as long again.
    """

    def __init__(self, clock: Callable[[], float], *, opens_after: int = OPENS_AFTER, rests_s: float = RESTS_S) -> None:
        self._clock = clock
        self._opens_after = opens_after
        self._rests_s = rests_s
        self._lock = threading.Lock()
        self._failures = 0
        self._closed_until_probe = 0.0
        self.opened = 0

    @property
    def open(self) -> bool:
        """Whether it is open or tries."""
        return self._failures >= self._opens_after

    def admits(self) -> bool:
        """Whether a call may go through now; while open, one for each rest."""
        with self._lock:
            if not self.open:
                return True
            now = self._clock()
            if now < self._closed_until_probe:
                return False
            self._closed_until_probe = now + self._rests_s
            return True

    def heard(self, *, good: bool) -> None:
        """Count how a call ended."""
        with self._lock:
            if good:
                self._failures = 0
                return
            self._failures += 1
            if self._failures == self._opens_after:
                self.opened += 1
            if self.open:
                self._closed_until_probe = self._clock() + self._rests_s
