"""What a container prints, followed: resumed where the connection ended, nothing lost, nothing twice."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agent.adapters.kubernetes.client import KubernetesApi
from agent.adapters.kubernetes.open_streams import OpenStreams
from agent.core.intake.json_fields import time_of
from agent.errors import InputRejected, SreError
from agent.ports.cluster import ContainerRef, PrintedLine
from agent.structured_log import structlog

SILENCE_S: Final = (
    300.0  # a server may print nothing for so long; then it is asked anew, for the connection may be dead
)
LINE_CHARS: Final = 65_536
KEPT: Final = 20_000  # lines of the last two seconds that are recognised when a connection is resumed
OVERLAP: Final = timedelta(seconds=1)  # two streams of one container are stamped by two threads, not quite in order
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0

log = structlog.get_logger(__name__)

Tell = Callable[[Sequence[PrintedLine]], None]


class FollowedLogs:
    """Follows containers of one API server by ``pods/log`` with ``follow``; see the port."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._streams = OpenStreams()
        self._stopping = self._streams.stopping
        self._waiting: set[threading.Event] = set()

    def follow(
        self,
        container: ContainerRef,
        tell: Tell,
        *,
        since: datetime,
        running: threading.Event,
        over: threading.Event,
    ) -> None:
        """Follow one container until its pod is gone; see the port."""
        position, wait_s = _Position(since), FIRST_WAIT_S
        self._waiting.add(running)
        while not self._stopping.is_set():
            running.wait()
            if over.is_set() or self._stopping.is_set():
                break
            asked = time.monotonic()
            try:
                wait_s = FIRST_WAIT_S if self._read(container, tell, position) else wait_s
            except InputRejected as error:  # it has not begun to run, or is gone: the pod will say so
                log.info("cluster.log_absent", pod=container.pod, why=error.why)
            except SreError as error:
                if time.monotonic() - asked < SILENCE_S:
                    log.warning("cluster.log_not_followed", pod=container.pod, error=str(error), again_in_s=wait_s)
            self._stopping.wait(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)
        self._waiting.discard(running)

    def stop(self) -> None:
        """End every follow; see the port. What waits for a first line has no answer yet that could be cut off."""
        self._streams.stop()
        for running in tuple(self._waiting):
            running.set()

    def _read(self, container: ContainerRef, tell: Tell, position: "_Position") -> bool:
        """Read until the connection ends; True where something new was reported."""
        query = {
            "container": container.container,
            "follow": "true",
            "timestamps": "true",
            "sinceTime": position.since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        path = f"/api/v1/namespaces/{container.namespace}/pods/{container.pod}/log"
        reported = False
        with (
            self._api.stream("GET", path, query=query, timeout_s=SILENCE_S) as response,
            self._streams.reading(response) as goes_on,
        ):
            position.resume()
            for raw in _batches(response) if goes_on else ():
                fresh = position.fresh(_printed(raw))
                if self._stopping.is_set():
                    break
                if fresh:
                    tell(fresh)
                    position.took(fresh)
                    reported = True
        return reported


class _Position:
    """How far a log was read: the API server goes on from a second only, so the lines about it are kept apart."""

    def __init__(self, since: datetime) -> None:
        self.since = since.astimezone(UTC).replace(microsecond=0)
        self._recent: deque[tuple[datetime, int]] = deque(maxlen=KEPT)
        self._again: Counter[int] = Counter()

    def resume(self) -> None:
        """Expect the recent lines again."""
        self._again = Counter(mark for _, mark in self._recent)

    def fresh(self, lines: list[PrintedLine]) -> list[PrintedLine]:
        """Return the lines that were not reported before the connection ended."""
        if not self._again:
            return lines
        found = []
        for line in lines:
            mark = hash((line.stamp, line.text))
            if mark not in self._again:
                found.append(line)
            elif self._again[mark] > 1:
                self._again[mark] -= 1
            else:
                del self._again[mark]
        return found

    def took(self, lines: list[PrintedLine]) -> None:
        """Go on from here next time."""
        self._recent.extend((line.at, hash((line.stamp, line.text))) for line in lines)
        newest = max(line.at for line in lines)
        self.since = max(self.since, (newest - OVERLAP).replace(microsecond=0))
        while self._recent and self._recent[0][0] < self.since:
            self._recent.popleft()


def _batches(response: Any) -> Iterator[list[bytes]]:
    """Yield whole lines as they come, those of one piece together.

    Of a line that never ends the beginning is kept; one that the connection cuts is read again.
    """
    held = b""
    for chunk in response.stream(65_536):
        *lines, rest = (held + chunk).split(b"\n")
        held = rest[: LINE_CHARS * 4]
        if lines:
            yield lines


def _printed(raw: list[bytes]) -> list[PrintedLine]:
    """Return the lines with the time that the kubelet puts before each; what has none is no line of the log."""
    found = []
    for line in raw:
        stamp, _, said = line.decode("utf-8", "replace").rstrip("\r").partition(" ")
        at = time_of(stamp)
        if at is not None:
            found.append(PrintedLine(stamp, at, said[:LINE_CHARS]))
    return found
