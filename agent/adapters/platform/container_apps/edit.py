"""A container app changed by typed actions: only what they name, and refused by name where that cannot be done."""

import copy
from typing import Final

from agent.adapters.platform.container_apps.app_ref import AppRef, Environment, Json, Seen
from agent.adapters.platform.container_apps.describe import config_of, probe_of_kind, read_config, server_of
from agent.adapters.platform.container_apps.template import merge_patch, parsed, stamped, traffic_of, weights_of
from agent.adapters.platform.server_flags import flag_without_effect
from agent.adapters.platform.traffic import check_not_pinned, parsed_traffic, shifted_traffic, staged_traffic
from agent.core.plan.action import (
    Action,
    LifecycleOperation,
    SetAccelerator,
    SetConcurrency,
    SetProgressDeadline,
    SetStrategy,
    SetTerminationGrace,
    SetVolumeOptions,
    applied,
)
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.service.serving import EnvVar, Probe, ServingConfig, Traffic
from agent.errors import InputRejected
from agent.ports.platform import Order, Restore

# ContainerAppProbe of azure-mgmt-appcontainers 5.1.0, and for the threshold ContainerAppProbeFailureThresholdOutOfRange
# ('1','30') of hashicorp/terraform-provider-azurerm#31980, read 2026-11-22.
PROBE_LIMITS: Final = {
    "initial_delay_s": (0, 60),
    "period_s": (1, 240),
    "timeout_s": (1, 240),
    "failure_threshold": (1, 30),
}
LONGEST_START_S: Final = 60 + 30 * 240
GRACE_S: Final = 600
MOST_REPLICAS: Final = 1000


def edited(seen: Seen, actions: tuple[Action, ...]) -> tuple[Json, str | None]:
    """Return template and workload profile in which the actions hold and everything else is as before.

    Raises:
        InputRejected: An action would have no effect here, or Azure would refuse it.
    """
    before = config_of(seen)
    for action in actions:
        why = _no_effect(before, action)
        if why:
            raise refused(seen.ref.name, why)
    after = applied(before, actions)
    check_limits(seen.ref.name, after)
    template, profile = copy.deepcopy(seen.template), seen.properties.get("workloadProfileName")
    if (after.accelerator, after.accelerator_count) != (before.accelerator, before.accelerator_count):
        profile = profile_for(seen.ref, after, seen.environment, "changed")
    write(server_of(seen.ref, template), template, before, after)
    made = read_config(seen.ref, template, profile, seen.environment)
    if made != after:
        raise refused(seen.ref.name, f"a container app cannot say it: {made.differing(after)}")
    return template, profile


def check_limits(app: str, config: ServingConfig) -> None:
    """Refuse what Azure is known to refuse, as ARM has no dry run.

    Raises:
        InputRejected: It would.
    """
    for name in ("startup_probe", "liveness_probe"):
        probe: Probe | None = getattr(config, name)
        if probe is not None:
            why = _beyond(name, probe)
            if why:
                raise refused(app, why)
    if config.max_instances is not None and config.max_instances > MOST_REPLICAS:
        raise refused(app, f"at most {MOST_REPLICAS} replicas can be had, {config.max_instances} were asked for")
    if config.termination_grace_s is not None and config.termination_grace_s > GRACE_S:
        raise refused(app, f"a replica that ends may finish for {GRACE_S} s at most")


def _beyond(name: str, probe: Probe) -> str:
    """Why Azure refuses a probe; empty where it takes it."""
    said = name.replace("_", " ")
    if probe.kind not in {"http", "tcp"}:
        return f"a {said} of Container Apps is http or tcp, not {probe.kind}"
    if probe.budget_s > LONGEST_START_S:
        return (
            f"the {said} would wait {probe.budget_s} s, and Container Apps waits {LONGEST_START_S} s at most "
            "(60 s of delay, 30 failures of 240 s each): a start that takes longer cannot be had there"
        )
    for field, (least, most) in PROBE_LIMITS.items():
        value = getattr(probe, field)
        if not least <= value <= most:
            return f"{field.removesuffix('_s').replace('_', ' ')} of the {said} is {value}, want {least} to {most}"
    return ""


def _no_effect(config: ServingConfig, action: Action) -> str:
    """Why an action would change what nobody reads; empty where it takes effect."""
    match action:
        case SetConcurrency():
            return "Container Apps does not limit requests of a replica; --max-num-seqs does"
        case SetStrategy() | SetProgressDeadline():
            return "Container Apps rolls a revision out in a way of its own, which cannot be chosen"
        case SetVolumeOptions():
            return "the mount options of its volumes belong to the storage of the environment"
        case SetTerminationGrace() | SetAccelerator():
            return ""
        case _:
            return flag_without_effect(config, action)


def profile_for(ref: AppRef, wanted: ServingConfig, environment: Environment, done: str) -> str:
    """Return the workload profile with the accelerator that is wanted.

    Raises:
        InputRejected: The environment has none; ``done`` is what was not done, such as ``created``.
    """
    profile = environment.profile_for(wanted.accelerator or "", wanted.accelerator_count)
    if profile is None:
        has = ", ".join(f"{p.name} ({p.kind})" for p in environment.profiles) or "none"
        raise InputRejected(
            f"{ref.name!r} was not {done}",
            why=f"no workload profile has {wanted.accelerator_count} x {wanted.accelerator}; its profiles are {has}",
            hint="add one to the environment: az containerapp env workload-profile add",
        )
    return profile


def write(container: Json, template: Json, before: ServingConfig, after: ServingConfig) -> None:
    """Write the fields that differ, each in place.

    Args:
        container: The server's, inside of ``template``.
        template: The whole.
        before: What it says now.
        after: What it shall say.
    """
    for field in ("command", "args"):
        if getattr(after, field) != getattr(before, field):
            container[field] = list(getattr(after, field))
    if after.env != before.env:
        container["env"] = _env(container.get("env") or [], before.env, after.env)
    resources = container.setdefault("resources", {})
    if after.cpu != before.cpu:
        resources["cpu"] = after.cpu
    if after.memory_mib != before.memory_mib and after.memory_mib is not None:
        resources["memory"] = f"{after.memory_mib / 1024:g}Gi"
    if (after.min_instances, after.max_instances) != (before.min_instances, before.max_instances):
        scale = template.get("scale") or {}
        template["scale"] = scale | {"minReplicas": after.min_instances, "maxReplicas": after.max_instances}
    for field, kind in (("startup_probe", "startup"), ("liveness_probe", "liveness")):
        if getattr(after, field) != getattr(before, field):
            _write_probe(container, kind, getattr(after, field))
    if after.termination_grace_s != before.termination_grace_s:
        template["terminationGracePeriodSeconds"] = after.termination_grace_s


def _env(entries: list[Json], before: tuple[EnvVar, ...], after: tuple[EnvVar, ...]) -> list[Json]:
    old, new = {e.name: e for e in before}, {e.name: e for e in after}
    kept = [e for e in entries if e["name"] in new and old.get(e["name"]) == new[e["name"]]]
    places = {e["name"]: n for n, e in enumerate(entries)}
    changed = [entry_of(e) for e in after if old.get(e.name) != e]
    return sorted([*kept, *changed], key=lambda e: places.get(str(e["name"]), len(places)))


def entry_of(variable: EnvVar) -> Json:
    """Return a variable as Azure writes it."""
    return {"name": variable.name} | (
        {"secretRef": variable.secret} if variable.secret else {"value": variable.value or ""}
    )


def _write_probe(container: Json, kind: str, probe: Probe | None) -> None:
    old = probe_of_kind(container, kind)
    others = [p for p in container.get("probes") or [] if p is not old]
    container["probes"] = others if probe is None else [*others, probe_body(kind, probe, old or {})]


def probe_body(kind: str, probe: Probe, old: Json) -> Json:
    """Return a probe as Azure writes it; headers and scheme of the old one stay where it stays of its sort."""
    handler = "httpGet" if probe.kind == "http" else "tcpSocket"
    how = dict(old.get(handler) or {}) | {"port": probe.port}
    if handler == "httpGet":
        how["path"] = probe.path or "/"
    kept = {k: v for k, v in old.items() if k not in {"httpGet", "tcpSocket", "initialDelaySeconds"}}
    delay = {"initialDelaySeconds": probe.initial_delay_s} if probe.initial_delay_s else {}
    return (
        kept
        | delay
        | {
            "type": kind.capitalize(),
            handler: how,
            "periodSeconds": probe.period_s,
            "timeoutSeconds": probe.timeout_s,
            "failureThreshold": probe.failure_threshold,
        }
    )


def refused(app: str, why: str) -> InputRejected:
    """Return the refusal of a change."""
    return InputRejected(f"{app!r} was not changed", why=why, hint="change it by hand, or make another plan")


def change_patch(seen: Seen, order: Order) -> Json:
    """Return the merge patch of a change; arrays are sent whole, and everything unnamed stays.

    Raises:
        InputRejected: It would have no effect, or Azure would refuse it.
    """
    starts = lifecycle_of(order.actions) is LifecycleOperation.START
    if seen.is_stopped and not starts:
        raise InputRejected(
            f"{order.service!r} was not changed",
            why="the app is stopped, so a new revision would not come up, and nothing could tell how the change ends",
            hint=f"start it first: sre-agent change {order.service} --start --why TEXT",
        )
    template, profile = edited(seen, order.actions)
    properties = _properties(seen, order, template, profile)
    if order.staged:
        return {"properties": properties | _traffic(seen, _staged(seen, order.revision))}
    if not starts:
        check_not_pinned(order.service, traffic_of(seen))
    return {"properties": properties}


def prior_patch(seen: Seen, order: Restore) -> Json:
    """Return the merge patch that puts template, profile and weights of before back."""
    prior = parsed(order.template)
    properties = _properties(seen, order, prior["template"], prior.get("workloadProfileName"))
    traffic = parsed_traffic(order.traffic)
    return {"properties": properties if traffic == traffic_of(seen) else properties | _traffic(seen, traffic)}


def shift_patch(seen: Seen, revision: str) -> Json:
    """Return the merge patch that gives a revision all traffic; where the weights followed the latest, so again."""
    traffic = shifted_traffic(traffic_of(seen), revision, latest_ready=seen.ref.ours(seen.newest_ready))
    return {"properties": _traffic(seen, traffic)}


def _properties(seen: Seen, order: Order | Restore, template: Json, profile: str | None) -> Json:
    made = stamped(template, seen.ref, revision=order.revision, effect_key=order.effect_key, incident=order.incident)
    properties: Json = {"template": merge_patch(seen.template, made)}
    if profile != seen.properties.get("workloadProfileName"):
        properties["workloadProfileName"] = profile
    return properties


def _traffic(seen: Seen, traffic: tuple[Traffic, ...]) -> Json:
    return {"configuration": {"ingress": {"traffic": weights_of(seen.ref, traffic)}}}


def _staged(seen: Seen, revision: str) -> tuple[Traffic, ...]:
    if not seen.is_multiple:
        raise InputRejected(
            f"{revision!r} was not staged",
            why="the app is in Single revision mode, in which the newest revision gets all traffic",
            hint="az containerapp revision set-mode --mode multiple, or change the app in place",
        )
    return staged_traffic(traffic_of(seen), revision, serving=seen.ref.ours(seen.newest_ready))
