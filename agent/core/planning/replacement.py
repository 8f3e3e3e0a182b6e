"""How new instances take the place of old ones, and whose change it is: what stands beside the flags of a plan."""

import json
from dataclasses import replace
from typing import Any, Final

from agent.core.plan.action import (
    Action,
    ForPerson,
    Lifecycle,
    SetFlag,
    SetProgressDeadline,
    SetScaling,
    SetStrategy,
    applied,
)
from agent.core.plan.capacity import Capacity
from agent.core.planning.candidates import Candidate
from agent.core.service.serving import ConfigWriter, Live, Probe, ServingConfig, Strategy

Json = dict[str, Any]

BESIDE_THE_TEMPLATE: Final = (SetScaling, SetStrategy, SetProgressDeadline, Lifecycle, ForPerson)
"""Actions that replace no instance by themselves."""


def strategy_without_spare(live: Live, actions: tuple[Action, ...] = ()) -> Strategy | None:
    """Return the strategy under which an old instance ends before the new one starts; None where none is needed.

    Args:
        live: The service; with an accelerator to spare nothing has to end first.
        actions: What else would be done.
    """
    config = applied(live.config, actions)
    instances = config.max_instances or 1
    if live.spare_accelerator or config.accelerator in {None, "cpu"}:
        return None
    if config.strategy is None or not config.strategy.needs_spare(instances):
        return None
    if instances == 1:
        return Strategy(kind="Recreate")
    return Strategy(kind="RollingUpdate", max_surge="0", max_unavailable="1")


def with_room(candidate: Candidate, service: str, live: Live, fits: Capacity) -> Candidate:
    """Return the candidate with the strategy that it needs to come up, and what that costs; the same where none is."""
    if all(isinstance(a, BESIDE_THE_TEMPLATE) for a in candidate.actions):
        return _freeing(candidate, service, live, fits)
    strategy = strategy_without_spare(live, candidate.actions)
    if strategy is None:
        return candidate
    note = _downtime(service, live, applied(live.config, candidate.actions), strategy, fits)
    return replace(
        candidate,
        actions=(*candidate.actions, SetStrategy(strategy=strategy)),
        notes=(*candidate.notes, note),
    )


def _freeing(candidate: Candidate, service: str, live: Live, fits: Capacity) -> Candidate:
    """Return the candidate with what it costs to end the old pod that a waiting rollout has left alone so far."""
    after = applied(live.config, candidate.actions)
    before, now = live.config.strategy, after.strategy
    if live.ready or before is None or now is None or not before.needs_spare(live.config.max_instances or 1):
        return candidate
    note = _downtime(service, live, after, now, fits)
    if now.needs_spare(after.max_instances or 1) or note in candidate.notes:
        return candidate
    return replace(candidate, notes=(*candidate.notes, note))


def _downtime(service: str, live: Live, after: ServingConfig, strategy: Strategy, fits: Capacity) -> str:
    """Say what the strategy costs while it is carried out."""
    why = "no accelerator is spare, so the old pod ends before the new one starts"
    older = live.latest_ready_revision if live.latest_ready_revision != live.latest_created_revision else None
    if not live.ready and older is None:
        return f"{why}; the service is down already"
    start = fits.start_up(service, after, seen_s=None)
    lasts = f"for about {start.seconds:,.0f} s ({start.says})" if start is not None else "until the new pod is ready"
    if strategy.kind == "Recreate" and not live.ready:
        return f"{why}: {older} serves now and is ended; the service is down {lasts}"
    if strategy.kind == "Recreate":
        return f"{why}: the service is down {lasts}, and for as long again if the change is undone"
    return f"{why}: one pod less answers {lasts}, for each pod"


def for_writer(candidate: Candidate, service: str, live: Live, fits: Capacity) -> Candidate:
    """Return the candidate as a patch for whoever's state comes back all the time; the same where nobody's does."""
    writer = live.writer
    if writer is None or not writer.reverts or any(isinstance(a, ForPerson) for a in candidate.actions):
        return candidate
    after = applied(live.config, candidate.actions)
    fit = candidate.fit or fits.assess(service, after)
    if fit.fits is False:
        return candidate  # it is no plan for anybody
    patch = patch_of(live, after, writer)
    task = ForPerson(
        action=_fix(candidate.actions),
        instruction=f"It is written by {writer.who}. Make this change in {writer.place}: {patch}",
        commands=writer.commands,
        undo=f"revert the change in {writer.place}",
    )
    return replace(candidate, actions=(task,), fit=fit)


def release_note(live: Live, actions: tuple[Action, ...]) -> tuple[str, ...]:
    """Say that the next release reverts the change, with the patch that keeps it; nothing where none does."""
    writer = live.writer
    if writer is None or writer.reverts:
        return ()
    patch = patch_of(live, applied(live.config, actions), writer)
    return (f"{writer.who}; to keep it, put this into {writer.place}: {patch}",)


def _fix(actions: tuple[Action, ...]) -> str:
    first = actions[0]
    return f"set_flag {first.name.replace('-', '_')}" if isinstance(first, SetFlag) else first.kind


def patch_of(live: Live, after: ServingConfig, writer: ConfigWriter) -> str:
    """Return a strategic merge patch of the workload, as JSON, which is YAML too: what differs and no more."""
    before = live.config
    container: Json = {"name": writer.container}
    if after.args != before.args:
        container["args"] = list(after.args)
    if after.env != before.env:
        old = {e.name: e for e in before.env}
        container["env"] = [{"name": e.name, "value": e.value} for e in after.env if old.get(e.name) != e]
        gone = [name for name in old if name not in {e.name for e in after.env}]
        container["env"] += [{"name": name, "$patch": "delete"} for name in gone]
    limits = {"cpu": after.cpu != before.cpu and f"{after.cpu:g}",
              "memory": after.memory_mib != before.memory_mib and f"{after.memory_mib}Mi"}  # fmt: skip
    if any(limits.values()):
        container["resources"] = {"limits": {name: value for name, value in limits.items() if value}}
    for field, name in (("startupProbe", "startup_probe"), ("livenessProbe", "liveness_probe")):
        new: Probe | None = getattr(after, name)
        if new != getattr(before, name):
            container[field] = _probe(new) if new is not None else None
    pod: Json = {"containers": [container]} if len(container) > 1 else {}
    if after.termination_grace_s != before.termination_grace_s:
        pod["terminationGracePeriodSeconds"] = after.termination_grace_s
    spec: Json = {"template": {"spec": pod}} if pod else {}
    if after.max_instances != before.max_instances:
        spec["replicas"] = after.max_instances
    if after.strategy != before.strategy and after.strategy is not None:
        rolling = {"maxSurge": after.strategy.max_surge, "maxUnavailable": after.strategy.max_unavailable}
        recreate = after.strategy.kind == "Recreate"
        spec["strategy"] = {"type": after.strategy.kind, "rollingUpdate": None if recreate else rolling}
    if after.progress_deadline_s != before.progress_deadline_s:
        spec["progressDeadlineSeconds"] = after.progress_deadline_s
    kind, _, name = writer.workload.partition("/")
    whole = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return json.dumps(whole, ensure_ascii=False)


def _probe(probe: Probe) -> Json:
    return {
        "initialDelaySeconds": probe.initial_delay_s,
        "periodSeconds": probe.period_s,
        "timeoutSeconds": probe.timeout_s,
        "failureThreshold": probe.failure_threshold,
    }
