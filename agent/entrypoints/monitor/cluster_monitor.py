"""The monitor of a cluster: changes of pods, events, workloads and nodes become signals, each once."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from agent.app import App
from agent.core.intake.json_fields import first_time, part, rows, text, time_of
from agent.core.intake.kubernetes import pod_origin, read_event, read_pod
from agent.core.intake.kubernetes_cluster import is_node_trouble, read_node, read_node_event, read_workload
from agent.core.intake.origin import Ignored, Reading, ResourceRef
from agent.core.intake.signal import Signal
from agent.core.service.services import Service, workload_ref
from agent.core.value import digest
from agent.entrypoints.monitor.log_monitor import LogMonitor
from agent.errors import InputRejected, SreError
from agent.ports.cluster import Change, ContainerLogs, Follower, Seen
from agent.ports.stage_context import Owner
from agent.stages.signal_to_incident import signal_to_incident
from agent.structured_log import structlog

NEWS_S = 900  # of what is found at the first start: an end that is older, of what serves again, is history
PENDING_S = 10.0  # a pod that no node takes for so long waits for something; for a moment it happens in any rollout
KEEP_S = 30.0  # how often it is written down until when we have looked
KEPT_OF_NODE = 20  # troubles of one node that are remembered for pods that are seen after them

Pod = Mapping[str, Any]
Reader = Callable[[Mapping[str, Any], Reading], list[Signal | Ignored]]

log = structlog.get_logger(__name__)


class ClusterMonitor:
    """Follows what happens to the watched workloads of one cluster.

    Args:
        app: Where signals go.
        follower: Follows the cluster's objects.
        services: The watched services of this cluster.
        folder: Where it is kept until when we have looked, so that a successor knows what is news.
        logs: Follows what their containers print.
    """

    def __init__(
        self, app: App, follower: Follower, services: tuple[Service, ...], *, folder: Path, logs: ContainerLogs
    ) -> None:
        self._app, self._follower = app, follower
        self._workloads = {(at.namespace, at.name): s for s in services for at in [workload_ref(s)]}
        self._refs = tuple(workload_ref(s) for s in services)
        self._pods: dict[str, Pod] = {}
        self._waiting: dict[str, tuple[float, Change]] = {}
        self._of_nodes: dict[str, deque[tuple[Reader, Change]]] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._seen_at = _SeenAt(folder / _state_file(services))
        seen_at = self._seen_at.read()
        self._news_from = seen_at or app.clock.now() - timedelta(seconds=NEWS_S)
        self._logs = LogMonitor(app, logs, seen_at=seen_at)
        watches: list[Callable[[], None]] = [self._tell_waiting]
        watches += [partial(follower.follow, path, tell, fields=fields) for path, tell, fields in self._collections()]
        self._threads = [threading.Thread(target=work, daemon=True) for work in watches]

    def start(self) -> None:
        """Follow each collection in a thread of its own."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End every watch."""
        self._stopping.set()
        self._logs.stop()
        self._follower.stop()
        for thread in self._threads:
            thread.join(5)

    def _collections(self) -> Iterable[tuple[str, Callable[[Change], None], str]]:
        for namespace in sorted({at.namespace for at in self._refs}):
            yield f"/api/v1/namespaces/{namespace}/pods", self._pod, ""
            yield f"/api/v1/namespaces/{namespace}/events", partial(self._report, self._event), ""
        for at in self._refs:
            path = f"/apis/apps/v1/namespaces/{at.namespace}/{at.kind}s"
            yield path, partial(self._report, read_workload), f"metadata.name={at.name}"
        yield "/api/v1/nodes", partial(self._of_node, self._node), ""
        about_nodes = "involvedObject.kind=Node"
        yield "/api/v1/namespaces/default/events", partial(self._of_node, self._node_event), about_nodes

    def _pod(self, change: Change) -> None:
        """Remember where the pod runs, and tell what it says of itself."""
        pod = change.object
        uid = text(part(pod, "metadata"), "uid")
        with self._lock:
            first_seen = self._waiting.pop(uid, (time.monotonic(), change))[0]
            if change.seen is Seen.GONE:
                self._pods.pop(uid, None)
                self._logs.gone(uid)
                return
            origin = pod_origin(pod, text(part(pod, "metadata"), "name"))
            service = next(filter(None, (self._service(name, origin.namespace) for name in origin.names)), None)
            if service is None:
                return
            node = text(part(pod, "spec"), "nodeName")
            placed = bool(node) and not part(self._pods.get(uid, {}), "spec").get("nodeName")
            self._pods[uid] = _sketch(pod)
            if not node:
                self._waiting[uid] = (first_seen, change)
                return
            of_node = tuple(self._of_nodes.get(node, ())) if placed else ()
        self._logs.observe(service, pod)
        try:
            for reader, earlier in of_node:  # the node was seen before its pod was
                self._report(reader, earlier)
        except SreError:
            with self._lock:
                self._pods.pop(uid, None)
            raise
        read = read_pod if change.seen is Seen.CHANGED or not self._is_history(pod) else _standing_only
        self._report(read, change)

    def _tell_waiting(self) -> None:
        """Tell of pods that still wait for a node after a while; looks at what is known here, never at the cluster."""
        while not self._stopping.wait(1.0):
            with self._lock:
                now = time.monotonic()
                due = [(uid, change) for uid, (since, change) in self._waiting.items() if now - since >= PENDING_S]
                for uid, _ in due:
                    self._waiting[uid] = (now, self._waiting[uid][1])
            for _, change in due:
                try:
                    self._report(read_pod, change)
                except SreError as error:
                    log.warning("cluster.signal_failed", error=str(error), again_in_s=PENDING_S)

    def _is_history(self, pod: Pod) -> bool:
        """Whether what a listed pod tells of an end happened before we looked, and is over."""
        status = part(pod, "status")
        states = [row for row in rows(status, "containerStatuses") if isinstance(row, Mapping)]
        conditions = [row for row in rows(status, "conditions") if isinstance(row, Mapping)]
        if status.get("phase") == "Failed":
            times = [time_of(row.get("lastTransitionTime")) for row in conditions] + [time_of(status.get("startTime"))]
        elif states and all(row.get("ready") is True for row in states):
            times = [time_of(part(row, "lastState", "terminated").get("finishedAt")) for row in states]
        else:
            return False
        latest = max(filter(None, times), default=None)
        return latest is not None and latest < self._news_from

    def _event(self, event: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
        """Read what is said of a pod; that no node takes it stands in its status as long as it is so."""
        of_pod = part(event, "involvedObject").get("kind") == "Pod" and event.get("reason") != "FailedScheduling"
        return read_event(event, reading) if of_pod else []

    def _of_node(self, read: Reader, change: Change) -> None:
        """Tell what is said of a node, and remember it for pods there that are not known yet, as at the start."""
        body = change.object
        node = text(part(body, "involvedObject"), "name") or text(part(body, "metadata"), "name")
        with self._lock:
            if change.seen is Seen.GONE and "involvedObject" not in body:
                self._of_nodes.pop(node, None)
            elif change.seen is not Seen.GONE and is_node_trouble(body):
                self._of_nodes.setdefault(node, deque(maxlen=KEPT_OF_NODE)).append((read, change))
        self._report(read, change)

    def _node(self, node: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
        return read_node(node, self._pods_on(text(part(node, "metadata"), "name")), reading)

    def _node_event(self, event: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
        return read_node_event(event, self._pods_on(text(part(event, "involvedObject"), "name")), reading)

    def _pods_on(self, node: str) -> list[Pod]:
        with self._lock:
            return [pod for pod in self._pods.values() if part(pod, "spec").get("nodeName") == node]

    def _report(self, read: Reader, change: Change) -> None:
        """Give each signal of an object to intake; an object that says nothing is passed over.

        Raises:
            SreError: The store did not take it; it is told again.
        """
        if change.seen is Seen.GONE or (change.seen is Seen.LISTED and self._is_old_event(change.object)):
            return
        try:
            found = read(change.object, self._reading())
        except InputRejected as error:
            log.debug("cluster.nothing_said", why=error.why)
            return
        except Exception:  # one object that breaks us must not hide all others
            log.exception("cluster.object_not_read", name=text(part(change.object, "metadata"), "name"))
            return
        for item in found:
            if isinstance(item, Signal):
                try:
                    signal_to_incident(self._app.contexts[Owner.INTAKE], item)
                except SreError:
                    raise
                except Exception:  # nor must one signal
                    log.exception("cluster.signal_failed", service=item.service, instance=item.instance)
        self._seen_at.keep(self._app.clock.now())

    def _is_old_event(self, body: Mapping[str, Any]) -> bool:
        if "involvedObject" not in body:
            return False
        at = first_time(body.get("lastTimestamp"), body.get("eventTime"), body.get("firstTimestamp"))
        return at is not None and at < self._news_from

    def _reading(self) -> Reading:
        return replace(self._app.reading(), watched=self._watched)

    def _watched(self, ref: ResourceRef) -> str | None:
        found = self._service(ref.service, ref.namespace)
        return found.name if found else None

    def _service(self, workload: str, namespace: str) -> Service | None:
        return self._workloads.get((namespace, workload))


def _standing_only(pod: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return how a pod stands now, without its ends of before."""
    return [item for item in read_pod(pod, reading) if isinstance(item, Signal) and item.end is None]


def _sketch(pod: Pod) -> Pod:
    """What is kept of a pod: to whom it belongs and where it runs."""
    metadata = part(pod, "metadata")
    keys = ("name", "namespace", "uid", "labels", "ownerReferences", "creationTimestamp")
    kept = {key: metadata[key] for key in keys if key in metadata}
    return {"metadata": kept, "spec": {"nodeName": part(pod, "spec").get("nodeName")}}


def _state_file(services: tuple[Service, ...]) -> str:
    """Name the file of a cluster: those of several contexts are looked at each by itself."""
    context = min((s.context or "" for s in services), default="")
    return f"cluster-{digest(context)[:12]}.json" if context else "cluster.json"


class _SeenAt:
    """Until when we have looked, in a file; written now and then."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._kept = 0.0

    def read(self) -> datetime | None:
        try:
            return time_of(json.loads(self._path.read_text()).get("seen_at"))  # not strict: a file of ours
        except (OSError, ValueError, AttributeError):
            return None

    def keep(self, at: datetime) -> None:
        with self._lock:
            if self._kept and time.monotonic() - self._kept < KEEP_S:
                return
            self._kept = time.monotonic()
            fresh = self._path.with_suffix(".tmp")
            try:
                fresh.write_text(json.dumps({"seen_at": at.isoformat()}))
                fresh.rename(self._path)
            except OSError as error:  # a successor looks further back then
                log.warning("cluster.seen_at_not_kept", error=str(error))
