"""Kubernetes: pod names, events and pod statuses (facts: v1 Event, v1 PodStatus)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from signal import SIGTERM
from typing import Any

from agent.core.intake.ends import end_of
from agent.core.intake.json_fields import facts, first_time, missing, name, names, part, rows, text
from agent.core.intake.origin import KUBERNETES, Ignored, Origin, Reading, signal
from agent.core.intake.signal import AskedBy, End, Signal, Source, Waiting, log_key
from agent.core.value import digest

_SAFE = "bcdfghjklmnpqrstvwxz2456789"  # the alphabet of generated suffixes: k8s.io/apimachinery util/rand
_DEPLOYED = re.compile(rf"^(?P<workload>.+)-(?P<hash>[{_SAFE}]{{6,10}})-[{_SAFE}]{{5}}$")
_REPLICA_SET = re.compile(rf"^(?P<workload>.+)-[{_SAFE}]{{6,10}}$")
_ORDINAL = re.compile(r"^(?P<workload>.+)-\d{1,5}$")
_UNASKED = frozenset({"PreemptionByScheduler", "DeletionByTaintManager", "TerminationByKubelet", "DeletionByPodGC"})
"""Reasons of the condition DisruptionTarget where the cluster took a pod and nobody asked for it (Kubernetes 1.26)."""
CLOCKS_DIFFER_S = 2
"""How much earlier than its deletion a pod may seem to have ended as it was asked to (facts 5.3): the node writes the
one time and the API server the other, both in whole seconds."""
MAX_GRACE_S = 86_400  # a longer grace is a sender's mistake: the deletion counts as asked for when it is over
_POD_IN_WORDS = re.compile(r"\bpod=([a-z0-9][a-z0-9.-]{0,252})_([a-z0-9-]{1,63})\(")


_WITHOUT_A_PLACE = frozenset(
    {"FailedScheduling", "NotTriggerScaleUp", "FailedCreate", "FailedMount", "FailedAttachVolume"}
)
"""Reasons of events about a pod that does not run yet; each is tried again until it succeeds."""
_TRIES_LIMIT_S = 600  # a port that is closed for so long is told, also where no probe ends the server for it


def workload(pod: str) -> str:
    """Return the deployment or stateful set that a pod's name says it belongs to; the name itself otherwise."""
    found = _DEPLOYED.match(pod) or _ORDINAL.match(pod)
    return found["workload"] if found else pod


def replica_set(pod: str) -> str | None:
    """Return the replica set of a deployment's pod: what a revision is on Kubernetes."""
    found = _DEPLOYED.match(pod)
    return f"{found['workload']}-{found['hash']}" if found else None


def read_event(event: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signal of a v1 Event as an exporter posts it, outside a log entry."""
    about = part(event, "involvedObject")
    owner, revision, pod = _about(text(about, "kind"), name(about.get("name")))
    origin = Origin(
        shape="Kubernetes event",
        platform=KUBERNETES,
        names=names(owner),
        namespace=text(about, "namespace"),
    )
    at = first_time(event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    said = event_text(event)
    if not said:
        raise missing(origin.shape, "message")
    uid = text(part(event, "metadata"), "uid") or digest(dict(event))
    return [
        signal(
            origin,
            reading,
            key=log_key(
                reading.run,
                log_name="events",
                insert_id=f"{uid}/{event.get('count')}",
                timestamp=at.isoformat() if at else "",
            ),
            source=Source.PLATFORM_LOG,
            at=at,
            said=said,
            revision=revision,
            instance=pod,
            severity="WARNING" if event.get("type") == "Warning" else "INFO",
            fields=event_fields(event),
            end=event_end(event),
            waiting=event_waiting(event),
        )
    ]


def _about(kind: str, named: str | None) -> tuple[str | None, str | None, str | None]:
    """Return workload, revision and pod of what an event is about; an event without a kind is about a pod."""
    if named is None:
        return None, None, None
    if kind == "ReplicaSet":
        found = _REPLICA_SET.match(named)
        return (found["workload"], named, None) if found else (named, None, None)
    if kind not in {"", "Pod"}:
        return named, None, None
    return workload(named), replica_set(named), named


def event_end(event: Mapping[str, Any]) -> End | None:
    """Return the end of a pod that an event tells: the kubelet takes it from a node that has no more room."""
    return end_of(reason="Evicted") if text(event, "reason") == "Evicted" else None


def event_waiting(event: Mapping[str, Any]) -> Waiting | None:
    """Return what a pod waits for that an event speaks of; a probe's try at a port that is closed ends nothing."""
    if text(event, "reason") in _WITHOUT_A_PLACE:
        return Waiting.FOR_A_PLACE
    if text(event, "reason") != "Unhealthy" or "connection refused" not in text(event, "message"):
        return None
    first, last = (first_time(event.get(key)) for key in ("firstTimestamp", "lastTimestamp"))
    long = first is not None and last is not None and (last - first).total_seconds() >= _TRIES_LIMIT_S
    return None if long else Waiting.FOR_ITS_PORT


def event_text(event: Mapping[str, Any]) -> str:
    """Return reason and message on one line, so that a phrase that spans both is found."""
    return ": ".join(word for word in (text(event, "reason"), text(event, "message")) if word)


def event_fields(event: Mapping[str, Any]) -> dict[str, str]:
    """Return the small facts of an event."""
    return facts(
        reason=event.get("reason"),
        count=event.get("count"),
        object=text(part(event, "involvedObject"), "fieldPath") or text(part(event, "involvedObject"), "kind"),
        host=part(event, "source").get("host"),
    )


def read_pod(pod: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return the signals of a pod, whole or its status alone: each end of a container, and how the pod stands now.

    A killed container is no event, it stands only here. One end is one observation, however often the pod is told.
    """
    seen = _PodStatus.of(pod, reading)
    gone = text(seen.status, "reason") if seen.status.get("phase") == "Failed" else ""
    if not seen.containers and not gone and not seen.lines:
        raise missing("pod status", "containerStatuses")
    found = [seen.ended(row, end) for row, init in seen.containers for end in _ends(row, init=init)]
    if gone:
        found.append(seen.gone(gone))
    if seen.lines or not found:
        found.append(seen.standing())
    return found


@dataclass(frozen=True, kw_only=True)
class _PodStatus:
    """A pod that an object or event describes, and where it belongs.

    Attributes:
        containers: Their rows, each with whether it is an init container.
        lines: What the containers wait for, or that they run.
    """

    pod: Mapping[str, Any]
    reading: Reading
    status: Mapping[str, Any]
    containers: tuple[tuple[Mapping[str, Any], bool], ...]
    lines: tuple[str, ...]
    named: str | None

    @classmethod
    def of(cls, pod: Mapping[str, Any], reading: Reading) -> "_PodStatus":
        status = part(pod, "status") or pod
        keys = (("initContainerStatuses", True), ("containerStatuses", False))
        found = tuple((row, init) for key, init in keys for row in rows(status, key) if isinstance(row, Mapping))
        lines = (*_unscheduled(status), *(line for row, _ in found for line in _container_lines(row)))
        named = name(part(pod, "metadata").get("name")) or _pod_in(lines)
        return cls(pod=pod, reading=reading, status=status, containers=found, lines=lines, named=named)

    def ended(self, row: Mapping[str, Any], ended: Mapping[str, Any]) -> Signal | Ignored:
        """Tell the end of a container."""
        code, number = _whole(ended.get("exitCode")), _whole(ended.get("signal"))
        who, reason, at = text(row, "name"), text(ended, "reason"), first_time(ended.get("finishedAt"))
        end = end_of(code=code, signal=number, reason=reason)
        words = f": {message}" if (message := text(ended, "message")) else ""
        return self._signal(
            key=_key(self.reading, "pod_end", [self.named, who, code, reason, ended.get("containerID")], at),
            at=at,
            said=f"{reason or 'Terminated'}: container {who} terminated with exit code "
            f"{'?' if code is None else code}{words}",
            fields=facts(
                phase=self.status.get("phase"), container=who, restarts=row.get("restartCount"), reason=reason
            ),
            end=end.with_(asked_by=_asked_by(self.pod, at, end)),
        )

    def gone(self, reason: str) -> Signal | Ignored:
        """Tell that the pod was taken from its node whole, such as an evicted one."""
        message = text(self.status, "message")
        return self._signal(
            key=_key(self.reading, "pod_gone", [self.named, reason, message], None),
            at=None,
            said=": ".join(filter(None, (reason, message))),
            fields=facts(phase=self.status.get("phase"), reason=reason),
            end=end_of(reason=reason).with_(asked_by=_asked_by(self.pod, None, end_of(reason=reason))),
        )

    def standing(self) -> Signal | Ignored:
        """Tell how the pod stands now."""
        at = max(filter(None, (_changed_at(row) for row, _ in self.containers)), default=None)
        counts = (_whole(row.get("restartCount")) for row, _ in self.containers)
        restarts = sum(count for count in counts if count is not None)
        said = "\n".join(self.lines) or f"pod {text(self.status, 'phase') or 'without phase'}"
        who = text(self.containers[0][0], "name") if self.containers else ""
        return self._signal(
            key=_key(self.reading, "pod_status", [self.named, said, restarts], at),
            at=at,
            said=said,
            fields=facts(phase=self.status.get("phase"), restarts=restarts, container=who),
            waiting=Waiting.FOR_A_PLACE if self.status.get("phase") == "Pending" and not restarts else None,
        )

    def _signal(
        self,
        *,
        key: str,
        at: datetime | None,
        said: str,
        fields: dict[str, str],
        end: End | None = None,
        waiting: Waiting | None = None,
    ) -> Signal | Ignored:
        return signal(
            pod_origin(self.pod, self.named),
            self.reading,
            key=key,
            source=Source.PLATFORM_LOG,
            at=at,
            said=said,
            revision=pod_revision(self.pod) or (self.named and replica_set(self.named)),
            instance=self.named,
            fields=fields,
            end=end,
            waiting=waiting,
        )


def pod_origin(pod: Mapping[str, Any], named: str | None) -> Origin:
    """Return where a pod belongs: to its controller, which its name says where the pod does not."""
    owner, metadata = _owner(pod), part(pod, "metadata")
    own = text(owner, "name")
    hashed = text(part(metadata, "labels"), "pod-template-hash")
    if owner.get("kind") == "ReplicaSet":
        own = own.removesuffix(f"-{hashed}") if hashed and own.endswith(f"-{hashed}") else ""
    return Origin(
        shape="pod status",
        platform=KUBERNETES,
        names=names(own or (named and workload(named))),
        namespace=text(metadata, "namespace"),
    )


def pod_revision(pod: Mapping[str, Any]) -> str | None:
    """Return the replica set or the stateful set's revision that a pod belongs to, as the pod itself says."""
    owner = _owner(pod)
    if owner.get("kind") == "StatefulSet":
        return name(part(pod, "metadata", "labels").get("controller-revision-hash"))
    return name(owner.get("name")) if owner.get("kind") == "ReplicaSet" else None


def _owner(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    owners = rows(part(pod, "metadata"), "ownerReferences")
    return next((o for o in owners if isinstance(o, Mapping) and o.get("controller") is True), {})


def _unscheduled(status: Mapping[str, Any]) -> Iterator[str]:
    """Say why no node takes the pod."""
    for row in rows(status, "conditions"):
        if isinstance(row, Mapping) and row.get("type") == "PodScheduled" and row.get("status") == "False":
            yield ": ".join(filter(None, ("FailedScheduling", text(row, "reason"), text(row, "message"))))


def _ends(row: Mapping[str, Any], *, init: bool) -> Iterator[Mapping[str, Any]]:
    """Yield the reported ends of a container, the earlier first; a healthy init container ends with 0."""
    for state in (part(row, "lastState"), part(row, "state")):
        ended = part(state, "terminated")
        if ended and not (init and ended.get("exitCode") == 0):
            yield ended


def _asked_by(pod: Mapping[str, Any], ended_at: datetime | None, end: End) -> AskedBy | None:
    """Who asked a pod to end: deletionTimestamp is when its grace is over, so the deletion was asked for before that.

    An end from before the deletion, a kill for memory, and what the cluster itself took, were asked by nobody. The
    clocks of node and API server may differ: an end shortly before, of the kind that a deletion causes, was asked for.
    """
    metadata = part(pod, "metadata")
    over = first_time(metadata.get("deletionTimestamp"))
    grace = metadata.get("deletionGracePeriodSeconds")
    reasons = {text(row, "reason") for row in rows(part(pod, "status"), "conditions") if isinstance(row, Mapping)}
    if over is None or end.oom or reasons & _UNASKED:
        return None
    asked_at = over - timedelta(seconds=grace if isinstance(grace, int) and 0 <= grace <= MAX_GRACE_S else 0)
    as_asked = end.exit_code == 0 or end.ended_by == SIGTERM
    differ = timedelta(seconds=CLOCKS_DIFFER_S if as_asked else 0)
    if ended_at is not None and ended_at < asked_at - differ:
        return None
    return AskedBy.DRAIN if "EvictionByEvictionAPI" in reasons else AskedBy.DELETION


def _key(reading: Reading, log: str, what: list[Any], at: datetime | None) -> str:
    return log_key(reading.run, log_name=log, insert_id=digest(what), timestamp=at.isoformat() if at else "")


def _container_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Say what a container waits for, or that it runs."""
    for state in (part(row, "lastState"), part(row, "state")):
        waits = part(state, "waiting")
        if waits:
            yield ": ".join(filter(None, (text(waits, "reason") or "Waiting", text(waits, "message"))))
        if part(state, "running"):
            yield f"Running: container {text(row, 'name')} is {'ready' if row.get('ready') is True else 'not ready'}"


def _changed_at(row: Mapping[str, Any]) -> Any:
    states = (part(row, "state"), part(row, "lastState"))
    return first_time(
        *(part(state, "terminated").get("finishedAt") for state in states),
        *(part(state, "running").get("startedAt") for state in states),
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _pod_in(lines: Iterable[str]) -> str | None:
    return next((found[1] for line in lines if (found := _POD_IN_WORDS.search(line))), None)
