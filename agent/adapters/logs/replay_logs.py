"""Plain logs of a replay, kept by service: the first and the last lines, however long the log is."""

from collections import deque
from datetime import datetime

from agent.ports.logs import InstanceLog, LogLine

HALF = 1000  # lines kept of either end; together what a diagnosis reads at most


class ReplayLogs:
    """Keeps the two ends of a log for each service; give its ``recordings`` to FileLogs."""

    def __init__(self) -> None:
        self._first: dict[str, list[LogLine]] = {}
        self._last: dict[str, deque[LogLine]] = {}
        self._dropped: dict[str, int] = {}

    def add(self, service: str, text: str, at: datetime) -> None:
        """Add a stretch of a service's log.

        Args:
            service: Whose log it is.
            text: Whole lines, untrusted.
            at: The time that all of it counts as.
        """
        first = self._first.setdefault(service, [])
        last = self._last.setdefault(service, deque(maxlen=HALF))
        for line in text.splitlines():
            kept = LogLine(at=at, text=line)
            if len(first) < HALF:
                first.append(kept)
            else:
                self._dropped[service] = self._dropped.get(service, 0) + (len(last) == HALF)
                last.append(kept)

    def recordings(self, service: str) -> tuple[InstanceLog, ...]:
        """Return the one log of a service, or nothing."""
        first = self._first.get(service)
        if not first:
            return ()
        last, dropped = self._last[service], self._dropped.get(service, 0)
        log = InstanceLog(service=service, revision=None, instance=None, lines=(*first, *last), complete=True)
        return (log.with_(cut_after=len(first), cut_lines=dropped) if dropped else log,)
