"""A serving configuration is what runs a model: container words, environment, probes, resources, scaling, traffic."""

from pydantic import AwareDatetime, Field

from agent.core.value import Value, digest

EFFECT_LABEL = "sre-agent-effect"  # the stamp on every revision we make
STAMP_LABELS = frozenset({EFFECT_LABEL, "sre-agent-incident"})


class EnvVar(Value):
    """One environment variable; a secret is named, never held."""

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
    message: str = ""
    spare_accelerator: bool | None = None
    resumes_with: tuple[int, int] | None = None
    url: str = ""
    changed_by: str = ""
    changed_at: AwareDatetime | None = None
    log_path: str | None = None

    @property
    def served_by_older(self) -> str | None:
        """The older revision that serves while the newest never came up; None where the newest serves, or nothing."""
        newest_failed = self.ready is False and self.latest_ready_revision != self.latest_created_revision
        return self.latest_ready_revision if newest_failed else None

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


class Target(Value):
    """Exactly which state of which service a plan was made for."""

    service: str
    uid: str
    generation: int
    digest: str
