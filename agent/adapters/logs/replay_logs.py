"""Plain logs of a replay, kept by service: the first and the last lines, however long the log is."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime

from agent.ports.logs import InstanceLog, LogLine

HALF = 1000  # lines kept of either end; together what a diagnosis reads at most


class ReplayLogs:
    """Keeps the two ends of a log for each service; give its ``recordings`` to FileLogs."""

    def __init__(self) -> None:
        self._first: dict[str, list[LogLine]] = {}
        self._last: dict[str, deque[LogLine]] = {}

    def add(self, service: str, lines: Iterable[tuple[int, str]], at: datetime) -> None:
        """Add a stretch of a service's log.

        Args:
            service: Whose log it is.
            lines: Each with its place in its file, from 1, or 0 where nobody knows it; untrusted.
            at: The time that all of it counts as.
        """
        first = self._first.setdefault(service, [])
        last = self._last.setdefault(service, deque(maxlen=HALF))
        for number, line in lines:
            (first if len(first) < HALF else last).append(LogLine(at=at, text=line, number=number))

    def recordings(self, service: str) -> tuple[InstanceLog, ...]:
        """Return the one log of a service, or nothing."""
        first = self._first.get(service)
        if not first:
            return ()
        lines = (*first, *self._last[service])
        return (InstanceLog(service=service, revision=None, instance=None, lines=lines, complete=True),)
