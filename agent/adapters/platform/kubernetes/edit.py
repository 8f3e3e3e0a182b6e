"""A workload changed by typed actions: only what they name, and refused by name where that cannot be done."""

import copy
from typing import Any

from agent.adapters.platform.kubernetes.container import (
    accelerator_label,
    is_tpu,
    label_value,
    server_of,
    write_probe,
)
from agent.adapters.platform.kubernetes.describe import config_of, strategy_of
from agent.adapters.platform.kubernetes.template import strategy_field
from agent.adapters.platform.kubernetes.workload import Seen
from agent.adapters.platform.quantities import cores, mebibytes
from agent.adapters.platform.server_flags import NO_TYPES
from agent.core.plan.action import (
    Action,
    ForPerson,
    Lifecycle,
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetInstanceType,
    SetModel,
    SetProgressDeadline,
    SetScaling,
    SetStrategy,
    SetVolumeOptions,
    applied,
    difference,
)
from agent.core.service.container_args import canonical_name, flag_map, served_model, server_args
from agent.core.service.serving import Probe, ServingConfig, Strategy
from agent.errors import InputRejected

Json = dict[str, Any]


def edited(seen: Seen, actions: tuple[Action, ...]) -> Json:
    """Return a copy of the workload's ``spec`` in which the actions hold and everything else is as before.

    Raises:
        InputRejected: An action would have no effect here, or cannot be said in this workload.
    """
    before = config_of(seen)
    why = _never_rolls_out(seen, actions) or next((w for a in actions if (w := _no_effect(seen, before, a))), "")
    if why:
        raise _refused(seen, why)
    after = applied(before, actions)
    spec = copy.deepcopy(seen.spec)
    _write(seen, spec, before, after)
    made = config_of(_with_spec(seen, spec))
    if made != after:
        raise _refused(seen, f"this workload cannot say it: {made.differing(after)}")
    return spec


def check_admitted(seen: Seen, wanted: Json, made: Json) -> None:
    """Refuse a ``spec`` of which the API server would store another configuration than the one that was asked for.

    It leaves out in silence what a kind does not have, and its defaults and admission webhooks write more.

    Raises:
        InputRejected: It would; nothing was changed yet.
    """
    changes = difference(*(config_of(_with_spec(seen, spec)) for spec in (wanted, made)))
    if changes:
        said = "; ".join(f"{c.path} {c.after or 'nothing'} in place of {c.before or 'nothing'}" for c in changes)
        raise _refused(seen, f"the API server, or an admission webhook, would store {said}")


def _with_spec(seen: Seen, spec: Json) -> Seen:
    return Seen(
        workload=seen.workload,
        body=seen.body | {"spec": spec},
        scaled_by=seen.scaled_by,
        autoscaler=seen.autoscaler,
        sets=seen.sets,
        pods=seen.pods,
        old_pods=seen.old_pods,
    )


def _never_rolls_out(seen: Seen, actions: tuple[Action, ...]) -> str:
    """Why a new template would not replace the running pods by itself; empty where it would."""
    if all(isinstance(a, SetScaling | Lifecycle | ForPerson) for a in actions):
        return ""
    if seen.spec.get("paused"):
        return "the Deployment is paused, so that no change of its template is rolled out"
    strategy = seen.spec.get(strategy_field(seen.workload.kind)) or {}
    if strategy.get("type") == "OnDelete":
        return "its update strategy is OnDelete: pods are replaced only when somebody deletes them"
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    return f"its update strategy keeps pods below partition {partition} as they are" if partition else ""


def _no_effect(seen: Seen, config: ServingConfig, action: Action) -> str:  # noqa: C901, PLR0911, PLR0912 - one answer for each kind
    """Why an action would change what nobody reads; empty where it takes effect."""
    match action:
        case SetFlag() | SetModel() if said := _unread(config):
            return said
        case SetFlag(name=name, value=None) if canonical_name(name) in flag_map(config.command):
            return f"--{canonical_name(name)} stands in the container's command, where flags are not taken away"
        case SetModel(model=model) if served_model(config.command, applied(config, (action,)).args) != model:
            return "the model stands among the words where it is not replaced: in the command, or alone in front"
        case SetEnv(name=name) if held := next((e.secret for e in config.env if e.name == name and e.secret), None):
            return f"{name!r} is filled in from {held}: change it there"
        case SetVolumeOptions(volume=volume) if not any(v.name == volume and v.bucket for v in config.volumes):
            return f"the container mounts no bucket under the name {volume!r}"
        case SetScaling() | Lifecycle() if seen.scaled_by:
            return f"the number of replicas belongs to {seen.scaled_by}"
        case SetScaling(min_instances=least, max_instances=most) if least != most:
            return f"a {seen.workload.kind} has one number of replicas, not {least} to {most}"
        case SetInstanceType():
            return NO_TYPES
        case SetConcurrency():
            return "Kubernetes does not limit the requests of a pod; vLLM does with --max-num-seqs"
        case SetStrategy() if seen.workload.kind == "statefulset":
            return "a StatefulSet ends each pod before it starts the new one, so that it needs no other strategy"
        case SetProgressDeadline() if seen.workload.kind == "statefulset":
            return "a StatefulSet has no progress deadline"
        case SetAccelerator(accelerator=name) if is_tpu(name) != is_tpu(config.accelerator or name):
            return "a GPU and a TPU are asked for as different resources, which is another template"
        case _:
            return ""


def _unread(config: ServingConfig) -> str:
    try:
        server_args(config.command, config.args)
    except InputRejected as error:
        return f"its flags cannot be set: {error.why}"
    return ""


def _write(seen: Seen, spec: Json, before: ServingConfig, after: ServingConfig) -> None:
    """Write the fields that differ, each in place."""
    template = spec["template"]
    container = server_of(template, seen.workload)
    if after.args != before.args:
        container["args"] = list(after.args)
    if after.env != before.env:
        container["env"] = _env(container.get("env") or [], before, after)
    _write_resources(template, container, before, after)
    for field, name in (("startupProbe", "startup_probe"), ("livenessProbe", "liveness_probe")):
        new: Probe | None = getattr(after, name)
        if new is None and getattr(before, name) is not None:
            del container[field]
        elif new is not None and new != getattr(before, name):
            container[field] = write_probe(container.get(field), new, container)
    if after.volumes != before.volumes:
        _write_options(template, before, after)
    if after.termination_grace_s != before.termination_grace_s:
        template["spec"]["terminationGracePeriodSeconds"] = after.termination_grace_s
    _write_beside(seen, spec, before, after)


def _write_beside(seen: Seen, spec: Json, before: ServingConfig, after: ServingConfig) -> None:
    """Write what stands beside the template."""
    if after.max_instances != before.max_instances:
        spec["replicas"] = after.max_instances
    if after.strategy != before.strategy and after.strategy is not None:
        spec[strategy_field(seen.workload.kind)] = written_strategy(after.strategy)
    if after.progress_deadline_s != before.progress_deadline_s:
        spec["progressDeadlineSeconds"] = after.progress_deadline_s


def written_strategy(strategy: Strategy) -> Json:
    """Return a strategy as Kubernetes writes it; counts are numbers there, percentages text."""
    said: Json = {"type": strategy.kind}
    if strategy.kind == "RollingUpdate":
        parts = (("maxSurge", strategy.max_surge), ("maxUnavailable", strategy.max_unavailable))
        said["rollingUpdate"] = {k: int(v) if v.isdecimal() else v for k, v in parts if v is not None}
    return said


def needs_spare(seen: Seen, strategy: Json) -> bool:
    """Whether a new pod would need an accelerator beside the old one's, and nobody said that there is one."""
    config = config_of(seen)
    said = strategy_of(strategy)
    if config.accelerator is None or seen.workload.kind == "statefulset" or (seen.workload.spare or 0) >= 1:
        return False
    return said is not None and said.needs_spare(int(seen.spec.get("replicas", 1)))


def _env(entries: list[Json], before: ServingConfig, after: ServingConfig) -> list[Json]:
    old, wanted = {e.name: e for e in before.env}, {e.name: e for e in after.env}
    kept = [
        entry if old[entry["name"]] == wanted[entry["name"]] else {"name": entry["name"], "value": new.value}
        for entry in entries
        if (new := wanted.get(entry["name"])) is not None
    ]
    return [*kept, *({"name": e.name, "value": e.value} for e in after.env if e.name not in old)]


def _write_resources(template: Json, container: Json, before: ServingConfig, after: ServingConfig) -> None:
    """Limits, and requests where they are set apart: they must not lie above the limits."""
    said = {
        "cpu": None if after.cpu == before.cpu else cores(after.cpu),
        "memory": None if after.memory_mib == before.memory_mib else mebibytes(after.memory_mib),
    }
    for name, value in said.items():
        if value is None:
            continue
        resources = container.setdefault("resources", {})
        resources.setdefault("limits", {})[name] = value
        if name in (resources.get("requests") or {}):
            resources["requests"][name] = value
    label = accelerator_label(template)
    if after.accelerator != before.accelerator and after.accelerator is not None and label is not None:
        template["spec"]["nodeSelector"][label] = label_value(after.accelerator)


def _write_options(template: Json, before: ServingConfig, after: ServingConfig) -> None:
    changed = {n.name: n.options for o, n in zip(before.volumes, after.volumes, strict=True) if o != n}
    for volume in template["spec"].get("volumes") or ():
        if volume["name"] in changed:
            volume["csi"]["volumeAttributes"]["mountOptions"] = ",".join(changed[volume["name"]])


def _refused(seen: Seen, why: str) -> InputRejected:
    return InputRejected(
        f"{seen.workload.says} was not changed", why=why, hint="change it by hand, or make another plan"
    )


def is_restart(actions: tuple[Action, ...]) -> bool:
    """Whether new pods are wanted though the template says the same."""
    return any(isinstance(a, Restart) for a in actions)
