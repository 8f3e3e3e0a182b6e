"""A service that is to be created: its configuration from services.toml, with flags that the fit filled in."""

import math
from typing import Final

from agent.core.plan.action import Lifecycle, LifecycleOperation
from agent.core.plan.capacity import Capacity
from agent.core.planning.longer_start import LONGEST_START_S, PROBE_MARGIN, READY_TIMEOUT
from agent.core.service.container_args import flag_map, served_model, with_flag
from agent.core.service.declared import Declared
from agent.core.service.services import Service
from agent.core.service.serving import EnvVar, Probe, ServingConfig, Volume
from agent.errors import InputRejected

IMAGE: Final = "vllm/vllm-openai"
PORT: Final = 8000
SHAPES: Final = {"nvidia-l4": (8.0, 32_768), "nvidia-rtx-pro-6000": (20.0, 81_920)}
"""vCPU and MiB of an instance on Cloud Run by accelerator (docs/facts.md 4.5); others say theirs in ``declared``."""

_PERIOD_S: Final = 15


def creation(
    service: Service,
    fits: Capacity,
    *,
    model: str | None = None,
    accelerator: str | None = None,
    platform: str | None = None,
) -> Lifecycle:
    """Return the creation of a service that services.toml names.

    What the owner declared is taken as it is; flags that they left open are filled in until the arithmetic fits. That
    it fits is proved when the plan is made, not here.

    Args:
        service: As services.toml names it.
        fits: The arithmetic.
        model: What the asker said; must be what services.toml says.
        accelerator: The same.
        platform: The same.

    Raises:
        InputRejected: services.toml says something else, or not enough.
    """
    said = (("model", model, service.model), ("accelerator", accelerator, service.accelerator))
    for name, asked, watched in (*said, ("platform", platform, service.platform)):
        if asked is not None and asked != watched:
            why = f"services.toml says that its {name} is {watched!r}, and {asked!r} was asked for"
            raise _refused(service.name, why, "change services.toml first, or leave it out")
    if service.platform == "kubernetes" and service.mounts:
        why = f"which claim holds {min(service.mounts)!r} is not said by 'mounts', so that its pods cannot mount it"
        hint = "leave mounts out and name the checkpoint by its Hugging Face id, or create it by hand from a manifest"
        raise _refused(service.name, why, hint)
    config = _filled_in(service, fits, _base(service))
    return Lifecycle(operation=LifecycleOperation.CREATE, config=_with_start(service, fits, config))


def check_creation(service: Service, config: ServingConfig) -> None:
    """Refuse a creation of something else than services.toml names; flags and sizes are held to the policy's bounds.

    Args:
        service: As services.toml names it.
        config: What was asked for, by whichever program.

    Raises:
        InputRejected: Image, model, mounts or accelerator are other ones, or another program would be started.
    """
    base = _base(service)
    model, asked_model = (served_model(c.command, c.args) for c in (base, config))
    said = [("model", model, asked_model)]
    said += [
        (name, getattr(base, name), getattr(config, name))
        for name in ("image", "command", "volumes", "accelerator", "accelerator_count")
    ]
    for name, named, asked in said:
        if named != asked:
            why = f"services.toml says that its {name} is {named!r}, and {repr(asked)[:200]} was asked for"
            raise _refused(service.name, why, "ask as services.toml says: sre-agent change NAME --create")


def _base(service: Service) -> ServingConfig:
    """What the entry says, before anything is computed."""
    declared, needs = service.declared or Declared(), service.needs
    args = ("--model", service.checkpoint or service.model, *(declared.flag_words or ()))
    wanted = (("port", PORT), ("max-model-len", needs.context), ("max-num-seqs", needs.users))
    for name, value in wanted:
        if value is not None and name not in flag_map(args):
            args = with_flag(args, name, str(value))
    most = declared.max_instances or 1
    least = most if service.platform == "kubernetes" else declared.min_instances or 0  # one number of replicas there
    shape = SHAPES.get(service.accelerator) if service.platform == "cloud_run" else None
    return ServingConfig(
        image=_image(service, declared),
        args=args,
        env=tuple(EnvVar(name=name, value=value) for name, value in declared.env.items()),
        cpu=declared.cpu or (shape[0] if shape is not None else None),
        memory_mib=declared.memory_mib or (shape[1] if shape is not None else None),
        accelerator=service.accelerator if service.accelerator != "cpu" else None,
        accelerator_count=service.accelerator_count,
        min_instances=least,
        max_instances=most,
        concurrency=declared.concurrency or needs.users,
        startup_probe=declared.startup_probe,
        liveness_probe=declared.liveness_probe,
        volumes=tuple(_volume(path, uri, n) for n, (path, uri) in enumerate(service.mounts.items(), start=1)),
    )


def _volume(path: str, uri: str, number: int) -> Volume:
    """A bucket that the entry says is mounted, or a folder of it."""
    bucket, _, folder = uri.removeprefix("gs://").rstrip("/").partition("/")
    options = (f"only-dir={folder}",) if folder else ()
    return Volume(name=f"models-{number}", mount_path=path, bucket=bucket, options=options)


def _image(service: Service, declared: Declared) -> str:
    if declared.image is not None:
        return declared.image
    if service.vllm is None:
        hint = 'add vllm = "0.32.0", or image under [service.declared]'
        raise _refused(service.name, "services.toml says neither its image nor its version of vLLM", hint)
    return f"{IMAGE}:v{service.vllm.removeprefix('v')}"


def _filled_in(service: Service, fits: Capacity, config: ServingConfig) -> ServingConfig:
    """Take the first change of flags alone that fits; where none does, the plan is refused with the reason."""
    if fits.assess(service.name, config).fits is True:
        return config
    options = (o for o in fits.options(service.name, config) if o.elsewhere is None and o.fit.fits is True)
    option = next(options, None)
    args = config.args
    for name, value in (option.flags if option is not None else {}).items():
        args = with_flag(args, name, value)
    return config.with_(args=args)


def _with_start(service: Service, fits: Capacity, config: ServingConfig) -> ServingConfig:
    """Let probe and engine wait as long as the start takes at its slow end, with room to spare."""
    if config.startup_probe is not None:
        return config
    longest = LONGEST_START_S[config.accelerator is not None or service.platform != "cloud_run"]
    start = fits.start_up(service.name, config, seen_s=None)
    budget = min(math.ceil(start.seconds * PROBE_MARGIN), longest) if start is not None else longest
    tries, port = math.ceil(budget / _PERIOD_S), int(flag_map(config.args)["port"])
    probe = Probe(kind="http", path="/health", port=port, period_s=_PERIOD_S, timeout_s=5, failure_threshold=tries)
    timeout = EnvVar(name=READY_TIMEOUT, value=str(probe.budget_s))
    env = tuple(e for e in config.env if e.name != READY_TIMEOUT)
    return config.with_(startup_probe=probe, env=(*env, timeout))


def _refused(service: str, why: str, hint: str) -> InputRejected:
    return InputRejected(f"service {service!r} is not created", why=why, hint=hint)
