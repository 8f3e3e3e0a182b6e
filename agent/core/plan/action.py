"""An action is one typed thing a plan may do; what is not in this file cannot be done."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agent.core.service.container_args import flag_map, served_model, with_flag
from agent.core.service.serving import EnvVar, Probe, ServingConfig, Strategy
from agent.core.value import Value


class SetFlag(Value):
    """Set a vLLM flag; ``value`` None removes it, an empty string sets a switch."""

    kind: Literal["set_flag"] = "set_flag"
    name: str
    value: str | None


class SetEnv(Value):
    """Set an environment variable from the allow-list of the policy."""

    kind: Literal["set_env"] = "set_env"
    name: str
    value: str | None


class SetStartupProbe(Value):
    """Replace the startup probe."""

    kind: Literal["set_startup_probe"] = "set_startup_probe"
    probe: Probe


class SetLivenessProbe(Value):
    """Replace the liveness probe; None removes it."""

    kind: Literal["set_liveness_probe"] = "set_liveness_probe"
    probe: Probe | None


class SetResources(Value):
    """Give the container other CPU and memory."""

    kind: Literal["set_resources"] = "set_resources"
    cpu: float
    memory_mib: int


class SetScaling(Value):
    """Change how many instances there may be; none at most stops the service."""

    kind: Literal["set_scaling"] = "set_scaling"
    min_instances: int = Field(ge=0)
    max_instances: int = Field(ge=0)


class SetConcurrency(Value):
    """Change how many requests one instance may hold at once."""

    kind: Literal["set_concurrency"] = "set_concurrency"
    concurrency: int = Field(ge=1, le=1000)


class SetAccelerator(Value):
    """Move to another accelerator, with the CPU and memory its shape asks for."""

    kind: Literal["set_accelerator"] = "set_accelerator"
    accelerator: str
    cpu: float
    memory_mib: int


class SetInstanceType(Value):
    """Give a rented machine another type, with what that type has; the machine is stopped for it.

    Attributes:
        instance_type: As the cloud names it, such as ``g6.2xlarge``.
        accelerator: A name of the accelerator catalogue.
        memory_mib: Of the whole machine, MiB (2**20).
    """

    kind: Literal["set_instance_type"] = "set_instance_type"
    instance_type: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9-]+$", max_length=40)
    accelerator: str
    accelerator_count: int = Field(ge=1)
    cpu: float
    memory_mib: int


class SetModel(Value):
    """Serve another checkpoint."""

    kind: Literal["set_model"] = "set_model"
    model: str


class SetVolumeOptions(Value):
    """Replace the mount options of a volume."""

    kind: Literal["set_volume_options"] = "set_volume_options"
    volume: str
    options: tuple[str, ...]


class SetStrategy(Value):
    """Change how a new template takes the place of the running one."""

    kind: Literal["set_strategy"] = "set_strategy"
    strategy: Strategy


class SetProgressDeadline(Value):
    """Change after which time the platform calls a rollout failed."""

    kind: Literal["set_progress_deadline"] = "set_progress_deadline"
    seconds: int = Field(ge=1, le=86_400)


class SetTerminationGrace(Value):
    """Change how long an instance that is asked to end may finish what it answers, before it is killed."""

    kind: Literal["set_termination_grace"] = "set_termination_grace"
    seconds: int = Field(ge=0, le=86_400)


class Restart(Value):
    """Start the same configuration again, as a new revision."""

    kind: Literal["restart"] = "restart"


class LifecycleOperation(StrEnum):
    """What may become of a service as a whole."""

    CREATE = "create"
    START = "start"
    STOP = "stop"
    DELETE = "delete"


class Lifecycle(Value):
    """Create, start, stop or delete a service.

    Attributes:
        config: What to run; of a creation only.
        min_instances: How many instances a start returns to at least.
        max_instances: The same at most.
        confirmed: The name of the service as the person typed it; a deletion wants it.
    """

    kind: Literal["lifecycle"] = "lifecycle"
    operation: LifecycleOperation
    config: ServingConfig | None = None
    min_instances: int = Field(default=0, ge=0)
    max_instances: int = Field(default=1, ge=1)
    confirmed: str = ""

    @model_validator(mode="after")
    def _creates_something(self) -> Self:
        if (self.operation is LifecycleOperation.CREATE) != (self.config is not None):
            raise ValueError("a creation needs the configuration to run, and nothing else has one")
        if self.config is not None and (not self.config.image or self.config.max_instances == 0):
            raise ValueError("a service is created from an image, with at least one instance at most")
        if self.min_instances > self.max_instances:
            raise ValueError(f"{self.min_instances} instances at least and {self.max_instances} at most cannot be")
        return self


class ForPerson(Value):
    """Something only a person may or can do; we say exactly what, and watch for its effect.

    Attributes:
        action: A word of the fix vocabulary, such as ``fix_quota``.
        commands: Quoted commands of that platform, to be read and run by a person; never run by us.
    """

    kind: Literal["for_person"] = "for_person"
    action: str
    instruction: str
    commands: tuple[str, ...] = ()
    undo: str = ""


Action = Annotated[
    SetFlag
    | SetEnv
    | SetStartupProbe
    | SetLivenessProbe
    | SetResources
    | SetScaling
    | SetConcurrency
    | SetAccelerator
    | SetInstanceType
    | SetModel
    | SetVolumeOptions
    | SetStrategy
    | SetProgressDeadline
    | SetTerminationGrace
    | Restart
    | Lifecycle
    | ForPerson,
    Field(discriminator="kind"),
]


NO_SERVICE = ServingConfig()
"""The configuration of a service that is not there: before its creation, and after its deletion."""


class Difference(Value):
    """One line of the exact difference to the live configuration; None means absent."""

    path: str
    before: str | None
    after: str | None


def applied(config: ServingConfig, actions: tuple[Action, ...]) -> ServingConfig:
    """Return the configuration after the actions; an action for a person or a restart changes nothing."""
    for action in actions:
        config = _one(config, action)
    return config


def _one(config: ServingConfig, action: Action) -> ServingConfig:  # noqa: C901, PLR0911, PLR0912 - one case for each
    match action:
        case SetFlag(name=name, value=value):
            return config.with_(args=with_flag(config.args, name, value))
        case SetEnv(name=name, value=value):
            return config.with_(env=_with_env(config.env, name, value))
        case SetStartupProbe(probe=probe):
            return config.with_(startup_probe=probe)
        case SetLivenessProbe(probe=liveness):
            return config.with_(liveness_probe=liveness)
        case SetResources(cpu=cpu, memory_mib=memory):
            return config.with_(cpu=cpu, memory_mib=memory)
        case SetScaling(min_instances=low, max_instances=high):
            return config.with_(min_instances=low, max_instances=high)
        case SetConcurrency(concurrency=concurrency):
            return config.with_(concurrency=concurrency)
        case SetAccelerator(accelerator=accelerator, cpu=cpu, memory_mib=memory):
            return config.with_(accelerator=accelerator, cpu=cpu, memory_mib=memory)
        case SetInstanceType():
            return config.with_(**action.model_dump(exclude={"kind"}))
        case SetModel(model=model):
            return config.with_(args=_with_model(config.args, model))
        case SetVolumeOptions(volume=volume, options=options):
            return config.with_(
                volumes=tuple(v.with_(options=options) if v.name == volume else v for v in config.volumes)
            )
        case Lifecycle():
            return _lifecycle(config, action)
        case SetStrategy(strategy=strategy):
            return config.with_(strategy=strategy)
        case SetProgressDeadline(seconds=seconds):
            return config.with_(progress_deadline_s=seconds)
        case SetTerminationGrace(seconds=seconds):
            return config.with_(termination_grace_s=seconds)
        case Restart() | ForPerson():
            return config


def _lifecycle(config: ServingConfig, action: Lifecycle) -> ServingConfig:
    match action.operation:
        case LifecycleOperation.CREATE:
            return action.config or config
        case LifecycleOperation.START:
            return config.with_(min_instances=action.min_instances, max_instances=action.max_instances)
        case LifecycleOperation.STOP:
            return config.with_(min_instances=0, max_instances=0)
        case LifecycleOperation.DELETE:
            return NO_SERVICE


def _with_env(env: tuple[EnvVar, ...], name: str, value: str | None) -> tuple[EnvVar, ...]:
    if value is None:
        return tuple(e for e in env if e.name != name)
    new = EnvVar(name=name, value=value)
    if any(e.name == name for e in env):
        return tuple(new if e.name == name else e for e in env)
    return (*env, new)


def _with_model(args: tuple[str, ...], model: str) -> tuple[str, ...]:
    """The model stands after ``serve`` or in ``--model``; whichever is there is replaced."""
    words = list(args)
    if (
        "serve" in words
        and words.index("serve") + 1 < len(words)
        and not words[words.index("serve") + 1].startswith("-")
    ):
        words[words.index("serve") + 1] = model
        return tuple(words)
    return with_flag(tuple(words), "model", model)


def difference(before: ServingConfig, after: ServingConfig) -> tuple[Difference, ...]:
    """Return what differs, flag by flag and field by field, in a fixed order."""
    return tuple(
        Difference(path=path, before=old.get(path), after=new.get(path))
        for old, new in [(flat(before), flat(after))]
        for path in [*old, *(p for p in new if p not in old)]
        if old.get(path) != new.get(path)
    )


def flat(config: ServingConfig) -> dict[str, str | None]:
    """Return every setting by its path, such as ``flag --max-model-len``; an empty value is a switch."""
    if config == NO_SERVICE:
        return {}
    flags = flag_map((*config.command, *config.args))
    flat: dict[str, str | None] = {f"flag --{name}": value for name, value in flags.items()}
    model = served_model(config.command, config.args)
    flat |= {"model": model} if model is not None and "model" not in flags else {}
    flat |= {f"env {e.name}": e.value if e.secret is None else f"secret {e.secret}" for e in config.env}
    flat |= {f"volume {v.name} options": " ".join(v.options) for v in config.volumes}
    for name in ("startup_probe", "liveness_probe"):
        probe: Probe | None = getattr(config, name)
        if probe is not None:
            flat |= {f"{name} {k}": str(v) for k, v in probe.model_dump(exclude_none=True).items()}
    flat |= {"strategy": config.strategy.says} if config.strategy is not None else {}
    plain = ("image", "instance_type", "cpu", "memory_mib", "accelerator", "accelerator_count", "min_instances",
             "max_instances", "concurrency", "progress_deadline_s", "termination_grace_s")  # fmt: skip
    flat |= {n: str(getattr(config, n)) for n in plain if getattr(config, n) is not None}
    return flat
