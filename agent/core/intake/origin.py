"""Where a body comes from, whether we watch that, and whether it is ourselves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from agent.core.intake.json_fields import cut, missing
from agent.core.intake.signal import LIVE, AlertState, End, Signal, Source, Stop, Waiting
from agent.core.service.services import Service, Services, workload_ref
from agent.core.value import Value

OWN_PREFIX = "sre-"
CANARY_LOG = "sre-canary"  # the log of the entry that we must hear
MANAGED_BY = "goog-managed-by"  # the label of Cloud Run services that are functions: ours

CLOUD_RUN = "cloud_run"
KUBERNETES = "kubernetes"
TPU_VM = "tpu_vm"
CONTAINER_APPS = "container_apps"
EC2 = "ec2"
HOST = "host"
UNKNOWN = "unknown"

_BY_RESOURCE = {"cloud_run": CLOUD_RUN, "k8s": KUBERNETES, "tpu": TPU_VM, "gce": HOST}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRef:
    """What a body calls its service, for looking up which watched service that is.

    Attributes:
        service: The name in the body: Cloud Run service, workload of a pod, TPU node, container app, alert label.
        project: Cloud project, account or subscription; empty where the body names none.
        location: Region or zone; empty where the body names none.
        namespace: Kubernetes namespace or Container Apps environment; empty elsewhere.
        labels: The resource's or alert's own labels, as they stand in the body.
    """

    service: str
    platform: str
    project: str = ""
    location: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


Watched = Callable[[ResourceRef], str | None]
"""Returns the watched service's name, or None where it is not watched. Asked once per candidate name."""


def watch_everything(place: ResourceRef) -> str | None:
    """Watch all there is, under the names in the bodies; for replays without a list of services."""
    return place.service


class IgnoredBecause(StrEnum):
    """Why a well-formed body became no signal; it is acknowledged, never quarantined."""

    OWN_SERVICE = "own_service"  # our own functions: a signal from them would feed on itself
    NOT_WATCHED = "not_watched"  # a service that is not in our care
    TEST = "test"  # a test notification
    NO_VERDICT = "no_verdict"  # neither open nor closed: acknowledged, or data are missing
    EMPTY = "empty"  # an entry without a word
    CANARY = "canary"  # our own proof that log entries reach us; nothing more follows
    MALFORMED = "malformed"  # one alert of several; the others became signals


class Ignored(Value):
    """A body, or one alert of it, that became no signal.

    Attributes:
        what: The name that decided; untrusted text.
    """

    because: IgnoredBecause
    what: str = ""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the reader of a body must know from elsewhere.

    Attributes:
        run: ``live`` or the id of a replay.
        watched: Looks a place up.
        own_services: Names of our own services beside those with ``OWN_PREFIX``.
        service: The service of bodies that name none (a bare pod status, a plain log).
        received_at: The time of bodies that have none, UTC.
        clock: Says it where ``received_at`` does not; asked only for a body that needs it.
    """

    run: str = LIVE
    watched: Watched = watch_everything
    own_services: frozenset[str] = frozenset()
    service: str | None = None
    received_at: datetime | None = None
    clock: Callable[[], datetime] | None = None

    def arrived(self) -> datetime | None:
        """Return the time of bodies that have none."""
        return self.clock() if self.received_at is None and self.clock is not None else self.received_at


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a body says that it comes from.

    Attributes:
        names: Candidates for the service's name, the best first.
        labels: The labels of the resource, for the lookup.
        marks: The labels that may say it is one of our functions.
    """

    shape: str
    platform: str
    names: tuple[str, ...]
    project: str = ""
    location: str = ""
    namespace: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, Any] = field(default_factory=dict)


def platform_of(resource_type: str) -> str:
    """Return the platform of a Cloud Logging or Monitoring resource type, such as ``cloud_run_revision``."""
    return next((known for start, known in _BY_RESOURCE.items() if resource_type.startswith(start)), UNKNOWN)


def service_of(origin: Origin, reading: Reading) -> str | Ignored:
    """Return the watched service that a body is about, or why it is none.

    Raises:
        InputRejected: The body names no service and neither does the reading.
    """
    candidates = origin.names or ((reading.service,) if reading.service else ())
    if not candidates:
        raise missing(origin.shape, "service name")
    if is_own(candidates[0], origin.marks, reading.own_services):
        return Ignored(because=IgnoredBecause.OWN_SERVICE, what=candidates[0])
    labels = {key: value for key, value in origin.labels.items() if isinstance(value, str)}
    for candidate in candidates:
        place = ResourceRef(
            service=candidate,
            platform=origin.platform,
            project=origin.project,
            location=origin.location,
            namespace=origin.namespace,
            labels=labels,
        )
        if found := reading.watched(place):
            return found
    return Ignored(because=IgnoredBecause.NOT_WATCHED, what=candidates[0])


def is_own(service: str, marks: Mapping[str, Any], own_services: frozenset[str]) -> bool:
    """Whether a service is one of ours; then nothing it says may open an incident."""
    return service.startswith(OWN_PREFIX) or service in own_services or marks.get(MANAGED_BY) == "cloudfunctions"


def signal(
    origin: Origin,
    reading: Reading,
    *,
    key: str,
    source: Source,
    at: datetime | None,
    said: str,
    revision: str | None = None,
    instance: str | None = None,
    severity: str = "",
    alert_id: str | None = None,
    alert_state: AlertState | None = None,
    fields: dict[str, str] | None = None,
    end: End | None = None,
    stop: Stop | None = None,
    waiting: Waiting | None = None,
) -> Signal | Ignored:
    """Return the signal of a body, or why it is none.

    Raises:
        InputRejected: No service, or no time of its own and none of its arrival.
    """
    service = service_of(origin, reading)
    if isinstance(service, Ignored):
        return service
    happened = at or reading.arrived()
    if happened is None:
        raise missing(origin.shape, "time")
    return Signal(
        key=key,
        run=reading.run,
        source=source,
        service=service,
        platform=origin.platform,
        revision=revision,
        instance=instance,
        at=happened,
        severity=severity.upper()[:32] or "DEFAULT",
        text=cut(said),
        alert_id=alert_id,
        alert_state=alert_state,
        fields=fields or {},
        end=end,
        stop=stop,
        waiting=waiting,
    )


def watched_by(services: Services) -> Watched:
    """Return the lookup for what ``services.toml`` watches; project, location and namespace must agree where both say.

    On Kubernetes a body names the workload, which may be called differently from its service, and the same name in
    another namespace is another workload. A name that stands for several is nobody's.
    Where nothing is listed, everything is watched under the name in the body.
    """
    if not services.services:
        return watch_everything

    def find(place: ResourceRef) -> str | None:
        if place.platform in {KUBERNETES, UNKNOWN}:
            found = [s for s in services.services if s.platform == KUBERNETES and _is_workload(s, place)]
            if found:
                return found[0].name if len(found) == 1 else None
        where = {"project_id": place.project, "location": place.location}
        where = {key: value for key, value in where.items() if value}
        named = services.by_labels({"service_name": place.service} | where) or services.by_labels(
            {**place.labels, **where}
        )
        return named.name if named and _agrees(named, place) else None

    return find


def _is_workload(service: Service, place: ResourceRef) -> bool:
    return workload_ref(service).name == place.service and _agrees(service, place)


def _agrees(service: Service, place: ResourceRef) -> bool:
    """Whether the namespace is the service's own; one that names neither it nor a workload is known by its labels."""
    if service.platform != KUBERNETES or not place.namespace or not (service.namespace or service.workload):
        return True
    return workload_ref(service).namespace == place.namespace
