"""A Cloud Run template changed by typed actions: only what they name, and refused by name where that cannot be done."""

from typing import Any

from agent.adapters.platform.cloud_run.describe import GPU, config_of, server_of
from agent.adapters.platform.cloud_run.lifecycle import write_probe
from agent.adapters.platform.quantities import mebibytes
from agent.adapters.platform.server_flags import flag_without_effect
from agent.core.plan.action import Action, SetScaling, SetVolumeOptions, applied
from agent.core.service.serving import Probe, ServingConfig
from agent.errors import InputRejected


def edited(template: Any, actions: tuple[Action, ...], *, scaled_above: bool = False) -> Any:
    """Return a copy of a ``RevisionTemplate`` message in which the actions hold and everything else is as before.

    Args:
        template: The message; left alone.
        actions: What to change.
        scaled_above: The service itself, not its template, decides how many instances there are.

    Raises:
        InputRejected: An action would have no effect here, or cannot be said in this template.
    """
    before = config_of(template)
    for action in actions:
        why = _no_effect(before, action, scaled_above=scaled_above)
        if why:
            raise _refused(why)
    after = applied(before, actions)
    copy = type(template)()
    copy.CopyFrom(template)
    _write(copy, before, after)
    if config_of(copy) != after:
        raise _refused(f"this template cannot say it: {config_of(copy).differing(after)}")
    return copy


def _no_effect(config: ServingConfig, action: Action, *, scaled_above: bool) -> str:
    """Why an action would change words that nobody reads; empty where it takes effect."""
    match action:
        case SetVolumeOptions(volume=volume) if not any(v.name == volume and v.bucket for v in config.volumes):
            return f"the container mounts no bucket under the name {volume!r}"
        case SetScaling() if scaled_above:
            return "the number of instances is set on the service, above its template"
        case _:
            return flag_without_effect(config, action)


def _write(template: Any, before: ServingConfig, after: ServingConfig) -> None:
    """Write the fields that differ, each in place."""
    container = server_of(template)
    if after.args != before.args:
        container.args[:] = after.args
    if after.env != before.env:
        _write_env(container, before, after)
    _write_resources(template, container, before, after)
    if (after.min_instances, after.max_instances) != (before.min_instances, before.max_instances):
        template.scaling.min_instance_count = after.min_instances
        template.scaling.max_instance_count = after.max_instances or 0
    if after.concurrency != before.concurrency:
        template.max_instance_request_concurrency = after.concurrency or 0
    for name in ("startup_probe", "liveness_probe"):
        new: Probe | None = getattr(after, name)
        if new == getattr(before, name):
            continue
        if new is None:
            container.ClearField(name)
        else:
            write_probe(getattr(container, name), new)
    if after.volumes != before.volumes:
        _write_options(template, before, after)


def _write_resources(template: Any, container: Any, before: ServingConfig, after: ServingConfig) -> None:
    limits = container.resources.limits
    if after.cpu != before.cpu and after.cpu is not None:
        limits["cpu"] = f"{after.cpu:g}"
    if after.memory_mib != before.memory_mib and after.memory_mib is not None:
        limits["memory"] = mebibytes(after.memory_mib)
    if after.accelerator != before.accelerator and after.accelerator is not None:
        template.node_selector.accelerator = after.accelerator
        if GPU not in limits:
            limits[GPU] = str(after.accelerator_count)


def _write_env(container: Any, before: ServingConfig, after: ServingConfig) -> None:
    old = {e.name: e for e in before.env}
    kept = {e.name for e in after.env}
    for index in reversed(range(len(container.env))):
        if container.env[index].name not in kept:
            del container.env[index]
    for new in after.env:
        if old.get(new.name) == new:
            continue
        entry = next((e for e in container.env if e.name == new.name), None)
        if entry is None:
            entry = container.env.add(name=new.name)
        entry.value = new.value or ""


def _write_options(template: Any, before: ServingConfig, after: ServingConfig) -> None:
    changed = {n.name: n.options for o, n in zip(before.volumes, after.volumes, strict=True) if o != n}
    for volume in template.volumes:
        if volume.name in changed:
            volume.gcs.mount_options[:] = changed[volume.name]


def _refused(why: str) -> InputRejected:
    return InputRejected("the template was not changed", why=why, hint="change it by hand, or make another plan")
