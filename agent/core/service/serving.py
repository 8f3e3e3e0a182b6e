"""A serving configuration is what runs a model: container words, environment, probes, resources, scaling, traffic."""

from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from agent.core.value import Excerpt, Value, digest

EFFECT_LABEL = "sre-agent-effect"  # the stamp on every revision we make
STAMP_LABELS = frozenset({EFFECT_LABEL, "sre-agent-incident"})


def _later(default: Any = None) -> Any:
    """A field that came after 0.1.0: left out of what is stored where it says nothing, so that digests stay."""
    return Field(default=default, exclude_if=lambda value: value == default)


class EnvVar(Value):
    """One environment variable; a secret, or what else only the platform fills in, is named and never held."""

    name: str
    value: str | None = None
    secret: str | None = None


class Probe(Value):
    """A startup or liveness probe; the longest wait is ``initial_delay_s + period_s * failure_threshold``."""

    kind: str = "tcp"  # tcp | http | grpc
    path: str | None = None
    port: int | None = None
    initial_delay_s: int = Field(default=0, ge=0)
    period_s: int = Field(default=240, ge=1)
    timeout_s: int = Field(default=240, ge=1)
    failure_threshold: int = Field(default=1, ge=1)

    @property
    def budget_s(self) -> int:
        """The longest time the instance may take, seconds."""
        return self.initial_delay_s + self.period_s * self.failure_threshold


class Volume(Value):
    """A mounted bucket; ``options`` are mount options without dashes."""

    name: str
    mount_path: str
    bucket: str | None = None
    read_only: bool = True
    options: tuple[str, ...] = ()


class Strategy(Value):
    """How a new template takes the place of the running one; counts and percentages as the platform writes them."""

    kind: Literal["Recreate", "RollingUpdate", "OnDelete"]
    max_surge: str | None = None
    max_unavailable: str | None = None

    @property
    def says(self) -> str:
        """The strategy in one line."""
        more = (("maxSurge", self.max_surge), ("maxUnavailable", self.max_unavailable))
        return " ".join((self.kind, *(f"{name} {value}" for name, value in more if value is not None)))

    def needs_spare(self, instances: int) -> bool:
        """Whether no instance is ended before a new one is ready, so that the new one needs an accelerator of its own.

        Surge is rounded up and unavailability down; both zero means that one may be unavailable. Source: Kubernetes,
        pkg/controller/deployment/util ResolveFenceposts.
        """
        if self.kind != "RollingUpdate" or self.max_surge is None:
            return False
        surge = _share(self.max_surge, instances, up=True)
        return surge > 0 and _share(self.max_unavailable or "0", instances, up=False) == 0


def _share(text: str, whole: int, *, up: bool) -> int:
    """A count, or a percentage of the instances; 0 for what is neither."""
    number = text.removesuffix("%")
    if not number.isdecimal():
        return 0
    if number == text:
        return int(number)
    return -(-int(number) * whole // 100) if up else int(number) * whole // 100


class Traffic(Value):
    """A share of the traffic; ``revision`` None means the latest ready one."""

    revision: str | None = None
    percent: int = Field(default=0, ge=0, le=100)
    tag: str | None = None


class ServingConfig(Value):
    """The configuration of one service, as far as we may read or change it.

    Attributes:
        command: The container's entry point, verbatim.
        args: The container's words, verbatim and in order; vLLM flags are parsed from them when needed.
        memory_mib: Memory limit of the container, MiB (2**20).
        accelerator: A name of the accelerator catalogue, None without one.
        concurrency: Requests one instance may hold at once, None for the platform's default.
        instance_type: The type of the rented machine it runs on, where one can be chosen for it, such as ``g6.xlarge``.
        strategy: How a new template takes the place of the running one, where the platform lets us choose.
        progress_deadline_s: After which time the platform calls a rollout failed, where it has such a limit.
        termination_grace_s: How long an instance that is asked to end may finish, where the platform lets us choose.
    """

    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    cpu: float | None = None
    memory_mib: int | None = None
    accelerator: str | None = None
    accelerator_count: int = 1
    min_instances: int = 0
    max_instances: int | None = None
    concurrency: int | None = None
    request_timeout_s: int | None = None
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None
    volumes: tuple[Volume, ...] = ()
    instance_type: str | None = _later()
    strategy: Strategy | None = _later()
    progress_deadline_s: int | None = _later()
    termination_grace_s: int | None = _later()

    def differing(self, other: "ServingConfig") -> str:
        """Return the names of the fields in which another one differs, for people."""
        return ", ".join(
            sorted(name for name in type(self).model_fields if getattr(self, name) != getattr(other, name))
        )


class ConfigWriter(Value):
    """Who else writes a service's configuration.

    Attributes:
        who: Such as ``Argo CD application 'llm', which reverts changes``.
        reverts: Whether it puts its own state back all the time, so that a change of ours does not last; otherwise its
            next release does.
        workload: The object, such as ``Deployment/gemma``.
        container: Its server's container.
        place: Where a lasting change is made: a repository, a chart's values, another object.
        commands: What shows or makes it there; for a person.
    """

    who: str
    reverts: bool
    workload: str
    container: str
    place: str
    commands: tuple[str, ...] = ()


class Live(Value):
    """A service as the platform shows it now.

    Attributes:
        uid: The platform's identity of the service; a service deleted and made again has another.
        generation: Counts the changes of the specification.
        etag: What an update must bring along; never re-read on a retry.
        template: The platform's own form of the template, canonical JSON, kept to put back byte by byte.
        stamps: Effect keys by revision name, for revisions we made.
        ready: Whether the newest revision serves; None while it is not known.
        message: What the platform says about it; untrusted text.
        resumes_with: The fewest and the most instances that a start gives back; None where it is not stopped.
        url: Where it is asked; empty where the platform names none.
        changed_by: Who changed its specification last, as the platform names them; empty where it does not.
        changed_at: When that was.
        log_path: The file that holds the newest start's log, where the server runs on this machine.
        can_stage: Whether a new revision can come up without traffic.
        template_scales: Whether the template says how many instances there are, so that putting it back scales too.
        scaled_by: What decides how many instances there are; empty where the configuration does.
        writer: Who else writes this configuration.
        when_stopped: What a stop of its machine costs or loses, a clause each; nothing where it has none of its own.
        cluster_object: How kubectl takes it, such as ``statefulset/gemma --namespace llm``; empty outside Kubernetes.
    """

    service: str
    platform: str
    config: ServingConfig
    uid: str
    generation: int
    etag: str
    template: str
    traffic: tuple[Traffic, ...] = ()
    latest_ready_revision: str | None = None
    latest_created_revision: str | None = None
    stamps: dict[str, str] = Field(default_factory=dict)
    ready: bool | None = None
    reconciling: bool = False
    message: Excerpt = ""
    spare_accelerator: bool | None = None
    resumes_with: tuple[int, int] | None = None
    url: str = ""
    changed_by: str = ""
    changed_at: AwareDatetime | None = None
    log_path: str | None = None
    can_stage: bool = True
    template_scales: bool = True
    scaled_by: str = ""
    writer: ConfigWriter | None = None
    cluster_object: str = ""
    when_stopped: tuple[str, ...] = ()

    @property
    def served_by_older(self) -> str | None:
        """The older revision that serves while the newest never came up; None where the newest serves, or nothing."""
        newest_failed = self.ready is False and self.latest_ready_revision != self.latest_created_revision
        return self.latest_ready_revision if newest_failed else None

    def serves(self, at: datetime) -> "Serves":
        """Return what answers requests now, as far as the platform says.

        Args:
            at: When it was described.
        """
        newest, ready = self.latest_created_revision, self.latest_ready_revision
        stopped = self.config.max_instances == 0
        older = ready if self.ready is not True and not stopped and ready != newest else None
        alone = self.config.max_instances == 1
        return Serves(at=at, ready=False if stopped else self.ready, older=older, alone=alone)

    @property
    def pinned_to(self) -> str | None:
        """A revision that has traffic by name, so that a new one would not get all of it; None where all follows."""
        return next((t.revision for t in self.traffic if t.revision is not None and t.percent), None)

    @property
    def target(self) -> "Target":
        """What an approval binds to."""
        return Target(
            service=self.service,
            uid=self.uid,
            generation=self.generation,
            digest=digest([self.template, [t.model_dump(mode="json") for t in self.traffic]]),
        )


class Serves(Value):
    """What answered requests of a service when its platform was asked.

    Attributes:
        at: When that was.
        ready: Whether the newest revision serves; None while it is not known.
        older: The older revision that serves while the newest does not.
        alone: Whether it has one instance at most.
    """

    at: AwareDatetime
    ready: bool | None
    older: str | None = None
    alone: bool = False


class Target(Value):
    """Exactly which state of which service a plan was made for."""

    service: str
    uid: str
    generation: int
    digest: str
