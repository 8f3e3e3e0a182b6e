"""Waking the threads of this process that wait for messages; other processes find them by polling."""

import threading


class WakeUp:
    """A bell that is never missed: whoever looked before it rang does not wait."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rung = 0
        self._heard = threading.local()

    def ring(self) -> None:
        """Wake everybody who waits."""
        with self._condition:
            self._rung += 1
            self._condition.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Return when the bell rang since this thread last waited, or after ``timeout_s``."""
        with self._condition:
            before = getattr(self._heard, "rung", 0)
            if self._rung == before:
                self._condition.wait(timeout_s)
            self._heard.rung = self._rung
