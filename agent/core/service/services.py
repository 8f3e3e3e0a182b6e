"""What is watched: the services of ``services.toml``, what their owners need, and which names are our own."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from agent.core.service.declared import Declared
from agent.core.value import Value
from agent.errors import InputRejected, SettingsRejected

Platform = Literal["cloud_run", "host", "kubernetes", "container_apps", "tpu_vm", "ec2"]

_DNS_LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
_KEY_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")  # short and plain: a key itself is no such name
_INTEGRATION_KEY = re.compile(r"(?=.*[0-9])[A-Za-z0-9]{20,}|[0-9a-fA-F-]{32,}")  # as PagerDuty and Opsgenie make them

# Where a resource's labels carry the name of the service; the first that is there counts.
NAME_LABELS = (
    "service_name",  # cloud_run_revision
    "ContainerAppName_s",  # Container Apps, Log Analytics
    "ContainerAppName",
    "node_id",  # tpu_worker
    "app",  # Kubernetes
    "job",  # Prometheus
)


class Needs(Value):
    """What the owner cannot do without; None means that it was not said.

    Attributes:
        context: Tokens of one request, prompt and answer together.
        users: Requests at the same time.
        tokens_per_s: Tokens per second that one user must see at least.
        usd_per_h: What the service may cost at most, USD per hour of one instance.
    """

    context: int | None = Field(default=None, gt=0)
    users: int | None = Field(default=None, gt=0)
    tokens_per_s: float | None = Field(default=None, gt=0)
    usd_per_h: float | None = Field(default=None, gt=0)


class Service(Value):
    """One watched service.

    Attributes:
        platform: Where it really runs, in a rehearsal too.
        model: Hugging Face id of the model, whatever path it is served from.
        checkpoint: ``gs://...``, a Hugging Face id, or a path inside the container; None means the model's id.
        mounts: Bucket by mount path, so that a mounted checkpoint can be read from outside.
        vllm: Version of vLLM in the image, None where nobody said.
        owner: The owner's channel, such as ``slack:#llm`` or ``console``.
        rotation: Who is on call for it, in the owner's words; shown to people and sent nowhere.
        routing_key: By what receivers of webhooks route its incidents, in their words: a team or a queue. It is sent in
            the clear, so it is never the secret key of an integration.
        runbook: Address of the owner's own instructions for its incidents.
        labels: Further resource labels that name this service in signals.
        api_key: Name of the key that the server itself wants (``--api-key``, ``VLLM_API_KEY``): which of the keys in
            the setting SERVICE_API_KEYS it is, never the key. None where it wants none.
        spare_accelerators: Accelerators of this kind that are free beside the running instances, so that a new
            revision can come up beside the old one; None where nobody said, which counts as none.
        namespace: Kubernetes: the namespace of the workload.
        workload: Kubernetes: ``deployment/NAME`` or ``statefulset/NAME``; None is the Deployment of the service's name.
        container: Kubernetes, Container Apps: the container that serves the model; None where it is plain. EC2: the
            name of a Docker container that no unit starts.
        resource_group: Container Apps: the resource group of the app; the subscription is the one of PLATFORM.
        environment: Container Apps: the managed environment that a creation goes to, by name or resource id.
        queued_resource: TPU VM: the queued resource that holds the node, whose name is the service's.
        context: Kubernetes: a context of the kubeconfig; None is the one of PLATFORM, or the cluster around us.
        instance: EC2: ``i-...``, or a tag that names one instance, ``NAME=VALUE``; ``location`` is its region.
        unit: EC2: the systemd unit that starts the server there, where it is no bare container.
        port: EC2: where the server is asked on the instance; None reads its own flag.
        log_group: EC2: the group of CloudWatch Logs that has the server's log; None reads it on the instance.
        log_stream: EC2: how the names of its streams begin there; None is the instance's id, empty any.
        declared: What it is meant to run, where the owner says so; what differs from it is shown as drift.
        usd_per_h: What an hour of one instance costs, where it is not the list price of prices.toml: a machine of one's
            own, a negotiated price, a cluster that is not GKE.
        objective: Percent of requests, and of the time, in which it is to answer: "99.5"; None where nobody said.
        scenario: A rehearsal: path of the scenario file, relative to this file. None in earnest.
    """

    name: str = Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    platform: Platform
    project: str | None = None
    location: str | None = None
    model: str = Field(min_length=1)
    checkpoint: str | None = None
    mounts: dict[str, str] = Field(default_factory=dict)
    accelerator: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    accelerator_count: int = Field(default=1, ge=1, le=1024)
    vllm: str | None = Field(default=None, pattern=r"^v?\d+\.\d+(\.\d+)?\S*$")
    needs: Needs = Needs()
    owner: str = Field(min_length=1)
    rotation: str | None = Field(default=None, min_length=1, max_length=300)
    routing_key: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$")
    runbook: str | None = Field(default=None, max_length=2000, pattern=r"^https?://[^\s<>\"]+$")
    labels: dict[str, str] = Field(default_factory=dict)
    api_key: str | None = None
    spare_accelerators: int | None = Field(default=None, ge=0, le=1024)
    namespace: str | None = Field(default=None, pattern=_DNS_LABEL)
    workload: str | None = Field(default=None, pattern=r"^(deployment|statefulset)/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    container: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")
    context: str | None = Field(default=None, min_length=1)
    resource_group: str | None = Field(default=None, pattern=r"^[-\w.()]{0,89}[-\w()]$")
    environment: str | None = Field(default=None, pattern=r"^(/subscriptions/\S{1,400}|[a-z0-9][a-z0-9-]{0,59})$")
    queued_resource: str | None = Field(default=None, pattern=r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")
    instance: str | None = Field(default=None, pattern=r"^(i-[0-9a-f]{8,17}|[^\s=]{1,128}=[^\s=]{1,256})$")
    unit: str | None = Field(default=None, pattern=r"^[A-Za-z0-9:_.\\@-]{1,200}\.service$")
    port: int | None = Field(default=None, ge=1, le=65_535)
    log_group: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_./#-]{1,512}$")
    log_stream: str | None = Field(default=None, pattern=r"^[!-9;-~]{0,512}$")
    declared: Declared | None = None
    usd_per_h: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    objective: float | None = Field(default=None, ge=50, lt=100)
    scenario: str | None = None

    @field_validator("mounts")
    @classmethod
    def _mounts(cls, mounts: dict[str, str]) -> dict[str, str]:
        for path, bucket in mounts.items():
            if not path.startswith("/") or not bucket.startswith("gs://"):
                raise ValueError(f"{path!r} = {bucket!r}, want an absolute path and gs://BUCKET")
        return mounts

    @field_validator("api_key")
    @classmethod
    def _names_a_key(cls, name: str | None) -> str | None:
        if name is not None and (not _KEY_NAME.fullmatch(name) or name.startswith("sk-")):
            raise ValueError(
                "want the name of a key in SERVICE_API_KEYS (small letters, digits, dashes), never the key"
            )
        return name

    @field_validator("routing_key")
    @classmethod
    def _is_no_secret(cls, key: str | None) -> str | None:
        if key is not None and _INTEGRATION_KEY.fullmatch(key):
            raise ValueError("it looks like the secret key of an integration; want a name, such as team-llm")
        return key

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.platform == "cloud_run" and not (self.project and self.location):
            raise ValueError("a cloud_run service needs project and location")
        if self.platform != "kubernetes" and (self.workload or self.context):
            raise ValueError("workload and context belong to a kubernetes service")
        if self.platform not in {"kubernetes", "container_apps", "ec2"} and self.container:
            raise ValueError("container belongs to a kubernetes, container_apps or ec2 service")
        if self.platform != "container_apps" and (self.resource_group or self.environment):
            raise ValueError("resource_group and environment belong to a container_apps service")
        if self.platform != "tpu_vm" and self.queued_resource:
            raise ValueError("queued_resource belongs to a tpu_vm service")
        mounted = self.checkpoint is not None and self.checkpoint.startswith("/")
        if mounted and self.platform != "host" and self._resolved(self.checkpoint or "") is None:
            raise ValueError(f"checkpoint {self.checkpoint!r} lies under none of mounts {sorted(self.mounts)}")
        return self

    @model_validator(mode="after")
    def _names_an_instance(self) -> Self:
        if self.platform != "ec2" and self.container and not re.fullmatch(_DNS_LABEL, self.container):
            raise ValueError(f"container {self.container!r} is no name: want small letters, digits and dashes")
        if self.platform != "ec2" and (self.instance or self.unit or self.port or self.log_group or self.log_stream):
            raise ValueError("instance, unit, port, log_group and log_stream belong to an ec2 service")
        started = bool(self.unit) + (self.platform == "ec2" and bool(self.container))
        if bool(self.instance) != (started > 0) or (self.instance and not self.location):
            raise ValueError("instance and unit (or container) go together, with location for the region")
        if started > 1:
            raise ValueError("unit and container: want one of them; a unit that runs docker is named as the unit")
        return self

    @property
    def checkpoint_uri(self) -> str:
        """Where the checkpoint can be read: ``gs://``, a local path on a host, or a Hugging Face id."""
        place = self.checkpoint or self.model
        return self._resolved(place) or place

    def _resolved(self, path: str) -> str | None:
        """Resolve a path through the longest mount above it; None where none is."""
        for mount in sorted(self.mounts, key=len, reverse=True):
            if path == mount or path.startswith(mount.rstrip("/") + "/"):
                return self.mounts[mount].rstrip("/") + path[len(mount.rstrip("/")) :]
        return None


class WorkloadRef(NamedTuple):
    """A Deployment or StatefulSet.

    Attributes:
        kind: ``deployment`` or ``statefulset``.
    """

    namespace: str
    kind: str
    name: str


def workload_ref(service: Service) -> WorkloadRef:
    """Return the object of a service on Kubernetes: its own words, or the Deployment of its name."""
    kind, _, name = (service.workload or f"deployment/{service.name}").partition("/")
    return WorkloadRef(namespace=service.namespace or "default", kind=kind, name=name)


class Services(Value):
    """Every watched service, and the names that are never a source of signals because they are ours."""

    services: tuple[Service, ...]
    own: tuple[str, ...] = ()

    def watched(self, name: str | None) -> Service | None:
        """Return the service of that name, or None where it is not watched."""
        return next((s for s in self.services if s.name == name), None)

    def service(self, name: str) -> Service:
        """Return the service of that name.

        Raises:
            InputRejected: It is not watched.
        """
        found = self.watched(name)
        if found is None:
            known = [s.name for s in self.services]
            close = difflib.get_close_matches(name, known, n=1)
            raise InputRejected(
                f"service {name!r} is unknown",
                why=f"services.toml watches {', '.join(known) or 'nothing'}",
                hint=f"did you mean {close[0]!r}?" if close else "add it to services.toml, or name one of those",
            )
        return found

    def by_labels(self, labels: Mapping[str, str]) -> Service | None:
        """Return the service that a resource's labels point at, or None.

        Args:
            labels: The resource's own labels. Project and location, where they are given, must agree.
        """
        instance = labels.get("InstanceId")
        placed = next((s for s in self.services if instance and s.instance == instance), None)
        if placed is not None:
            return placed
        name = next((labels[key] for key in NAME_LABELS if labels.get(key)), None)
        named = self.watched(name)
        if named is not None:
            return named if _agrees(named, labels) else None
        marked = (s for s in self.services if s.labels and s.labels.items() <= labels.items())
        return next((s for s in marked if _agrees(s, labels)), None)

    def is_own(self, name: str | None) -> bool:
        """Whether a name is one of our own services, whose log entries are dropped."""
        return name in self.own


def _agrees(service: Service, labels: Mapping[str, str]) -> bool:
    said = ((service.project, labels.get("project_id")), (service.location, labels.get("location")))
    return all(ours is None or theirs is None or ours == theirs for ours, theirs in said)


def parse_services(source: str | Mapping[str, Any], accelerators: frozenset[str] | None = None) -> Services:
    """Return what is watched.

    Args:
        source: The text of ``services.toml``, or the same as a dict: tables ``[[service]]``, list ``own``.
        accelerators: Names that the catalogue knows; None leaves the names unchecked.

    Raises:
        SettingsRejected: With every mistake at once.
    """
    data = _table(source) if isinstance(source, str) else source
    mistakes = [f"unknown key {key!r}, want 'service' or 'own'" for key in data if key not in {"service", "own"}]
    entries = data.get("service", [])
    if not isinstance(entries, list) or not entries:
        mistakes.append("there is no [[service]]")
        entries = []
    services: list[Service] = []
    for number, entry in enumerate(entries, start=1):
        name = repr(entry["name"]) if isinstance(entry, Mapping) and "name" in entry else str(number)
        try:
            services.append(Service.model_validate(entry))
        except ValidationError as error:
            mistakes += [f"service {name}: {_mistake(e)}" for e in error.errors()]
    mistakes += _across(services, accelerators)
    own = data.get("own", [])
    if not isinstance(own, list) or not all(isinstance(name, str) and name for name in own):
        mistakes.append(f"own is {own!r}, want a list of names")
        own = []
    mistakes += [f"service {s.name!r} is both watched and our own" for s in services if s.name in own]
    if mistakes:
        raise _rejected(mistakes)
    return Services(services=tuple(services), own=tuple(own))


def _table(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _rejected([f"not TOML: {error}"]) from error


def _across(services: list[Service], accelerators: frozenset[str] | None) -> list[str]:
    names = [s.name for s in services]
    twice = [f"service {n!r} stands {names.count(n)} times" for n in sorted(set(names)) if names.count(n) > 1]
    unknown = [
        f"service {s.name!r}: accelerator is {s.accelerator!r}, want one of {', '.join(sorted(accelerators))}"
        for s in services
        if accelerators is not None and s.accelerator not in accelerators
    ]
    return twice + unknown


def _mistake(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    said = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{place} is missing"
    if error["type"] == "extra_forbidden":
        last = str(error["loc"][-1])
        near = difflib.get_close_matches(last, Service.model_fields, n=1) if len(error["loc"]) == 1 else []
        return f"unknown key {place!r}" + (f", did you mean {near[0]!r}?" if near else "")
    if not place:
        return said
    if place.endswith(("api_key", "routing_key")):
        return f"{place}: {said}"  # what stands there may be the key itself
    return f"{place} is {error.get('input')!r}: {said}"


def _rejected(mistakes: list[str]) -> SettingsRejected:
    count = f"{len(mistakes)} mistake{'' if len(mistakes) == 1 else 's'}"
    return SettingsRejected(
        f"services.toml was not read: {count}",
        why="; ".join(mistakes),
        hint="correct them all; see docs/services.md for every key",
    )
