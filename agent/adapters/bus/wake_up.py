"""Waking the threads of this process that wait for messages; other processes find them by polling."""

import threading


class WakeUp:
    """A notification that is never missed: a thread that looked before it came does not wait."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self._seen = threading.local()

    def notify(self) -> None:
        """Wake everybody who waits."""
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Return when somebody notified since this thread last waited, or after ``timeout_s``."""
        with self._condition:
            before = getattr(self._seen, "count", 0)
            if self._count == before:
                self._condition.wait(timeout_s)
            self._seen.count = self._count
