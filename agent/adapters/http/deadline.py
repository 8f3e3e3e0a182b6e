"""A deadline: one moment that all steps of a call share."""

import time


class Deadline:
    """A moment that does not move.

    Args:
        seconds: From now on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds that are left, never below zero."""
        return max(0.0, self._until - time.monotonic())
