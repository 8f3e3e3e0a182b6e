"""The monitor of container logs: what a server prints while it runs becomes signals, each once, without polling."""

import copy
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agent.app import App
from agent.core.intake.json_fields import part, text
from agent.core.intake.kubernetes_log import RunningStart, printed_signal, running_start, serving_container
from agent.core.intake.log_sample import PowerOfTwoCounter
from agent.core.service.services import Service
from agent.errors import SreError
from agent.failures.text.log_text import clean
from agent.ports.cluster import ContainerLogs, ContainerRef, PrintedLine
from agent.ports.stage_context import Owner
from agent.stages.signal_to_incident import signal_to_incident
from agent.structured_log import structlog

MOST_STREAMS = 64  # threads and connections; a pod beyond them is followed once one of these is gone

Pod = Mapping[str, Any]

log = structlog.get_logger(__name__)


class LogMonitor:
    """Follows the serving container of each watched pod.

    Args:
        app: Where signals go.
        logs: Follows one container.
        seen_at: Until when a predecessor has looked; None at the first start, when what a ready server printed before
            is history.
        most: Streams at the same time.
    """

    def __init__(
        self, app: App, logs: ContainerLogs, *, seen_at: datetime | None = None, most: int = MOST_STREAMS
    ) -> None:
        self._app, self._logs, self._most = app, logs, most
        self._seen_at = seen_at or app.clock.now()
        self._streams: dict[str, _Stream] = {}
        self._queue: deque[_Stream] = deque()
        self._lock = threading.Lock()

    def observe(self, service: Service, pod: Pod) -> None:
        """Take the present state of a watched pod: whether its container runs, and which start of it."""
        uid = text(part(pod, "metadata"), "uid")
        container = serving_container(pod, service.container)
        start = running_start(pod, container)
        with self._lock:
            stream = self._streams.get(uid)
            if stream is None and start is not None:
                stream = self._streams[uid] = _Stream(service.name, pod, container, self._since(start))
                self._queue.append(stream)
                self._begin()
            if stream is not None:
                stream.observe(start)

    def gone(self, uid: str) -> None:
        """Take that a pod is no more."""
        with self._lock:
            stream = self._streams.pop(uid, None)
            if stream is not None:
                stream.end()
                if stream in self._queue:
                    self._queue.remove(stream)

    def stop(self) -> None:
        """End every stream."""
        with self._lock:
            for stream in self._streams.values():
                stream.end()
            self._queue.clear()
        self._logs.stop()

    def _since(self, start: RunningStart) -> datetime:
        """From when on: of a server that is not ready yet all, for its load is part of what goes wrong later."""
        if start.since is None:
            return self._seen_at
        return max(start.since, self._seen_at) if start.ready else start.since

    def _begin(self) -> None:
        """Begin the streams that there is room for; the lock is held."""
        while self._queue and sum(1 for s in self._streams.values() if s.begun) < self._most:
            stream = self._queue.popleft()
            stream.begun = True
            threading.Thread(target=self._run, args=(stream,), name="container-log", daemon=True).start()
        if self._queue:
            log.warning("cluster.logs_not_followed", pods=len(self._queue), most=self._most)

    def _run(self, stream: "_Stream") -> None:
        try:
            self._logs.follow(
                stream.ref,
                lambda lines: self._tell(stream, lines),
                since=stream.since,
                running=stream.running,
                over=stream.over,
            )
        except Exception:
            log.exception("cluster.log_not_followed", pod=stream.ref.pod)
        finally:
            with self._lock:
                stream.begun = False
                self._begin()

    def _tell(self, stream: "_Stream", lines: Sequence[PrintedLine]) -> None:
        """Give the telling lines to intake; of equal ones the first of a start, then each power of two.

        Raises:
            SreError: The store did not take one; all are told again, and those that were taken are known by their key.
        """
        texts = [clean(line.text) for line in lines]
        counter = copy.deepcopy(stream.counter)  # what is told again must not be counted twice
        for index, match in self._app.rules.matcher.scan(texts):
            if counter.tells(match.signature):
                self._take(stream, lines[index], texts[index])
        stream.counter = counter

    def _take(self, stream: "_Stream", line: PrintedLine, said: str) -> None:
        signal = printed_signal(
            stream.service, stream.pod, stream.ref.container, stamp=line.stamp, at=line.at, line=said
        )
        try:
            signal_to_incident(self._app.contexts[Owner.INTAKE], signal)
        except SreError:
            raise
        except Exception:  # one line that breaks us must not hide all others
            log.exception("cluster.signal_failed", service=stream.service, instance=stream.ref.pod)


class _Stream:
    """One container that is followed, or is to be."""

    def __init__(self, service: str, pod: Pod, container: str, since: datetime) -> None:
        metadata = part(pod, "metadata")
        self.service, self.since, self.begun = service, since, False
        self.ref = ContainerRef(text(metadata, "namespace"), text(metadata, "name"), container)
        self.pod = {"metadata": {k: metadata[k] for k in ("name", "uid", "labels", "ownerReferences") if k in metadata}}
        self.running, self.over = threading.Event(), threading.Event()
        self.counter = PowerOfTwoCounter()
        self._number = -1

    def observe(self, start: RunningStart | None) -> None:
        """Go on while it runs; a new start is counted anew."""
        if start is None:
            self.running.clear()
            return
        if start.number != self._number:
            self._number, self.counter = start.number, PowerOfTwoCounter()
        self.running.set()

    def end(self) -> None:
        """Let the stream end."""
        self.over.set()
        self.running.set()
