"""Kubernetes as a platform: Deployments and StatefulSets, changed under a test of the generation they were read at."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from agent.adapters.kubernetes.client import WRITE_S, KubernetesApi
from agent.adapters.platform.kubernetes.describe import (
    live_of,
    manager_of,
    native_revision,
    newest_revision,
)
from agent.adapters.platform.kubernetes.edit import check_admitted, edited, is_restart, needs_spare
from agent.adapters.platform.kubernetes.manifest import manifest
from agent.adapters.platform.kubernetes.measure import Meter
from agent.adapters.platform.kubernetes.rollout import noted_pods, progress, remaining, stuck_pods
from agent.adapters.platform.kubernetes.template import (
    EARLIER,
    INCIDENT,
    PODS_LATER,
    RESUMES,
    REVISION,
    STRATEGY_LATER,
    TEMPLATE,
    bare,
    deletion_steps,
    earlier_effects,
    effects_of,
    our_revision,
    parts_of,
    same,
    set_revision,
    spec_steps,
    stamp_steps,
    stamped,
    strategy_field,
    strategy_later,
    text_of,
)
from agent.adapters.platform.kubernetes.workload import Seen, Workload, annotations, look
from agent.adapters.platform.kubernetes.writers import writer_of
from agent.adapters.platform.refusals import no_shift, no_such_revision, state_changed, unknown_operation, watched
from agent.adapters.platform.traffic import LATEST
from agent.core.change.verification import Measurement
from agent.core.plan.action import Lifecycle, LifecycleOperation, SetScaling
from agent.core.plan.lifecycle import NOT_THERE, lifecycle_of
from agent.core.service.serving import EFFECT_LABEL, Live
from agent.core.value import canonical, digest
from agent.errors import InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.control import LeaseEnd
from agent.ports.model_server import ModelServer
from agent.ports.platform import NotDeployed, Operation, Order, Restore, seconds_to_send
from agent.structured_log import structlog

Json = dict[str, Any]

RECREATE: Final[Json] = {"type": "Recreate"}

log = structlog.get_logger(__name__)


class KubernetesPlatform:
    """Describes and changes the workloads of ``services.toml``.

    Args:
        workloads: By service.
        api: Gives the API server of a service.
        meter: Measures pods.
    """

    def __init__(self, workloads: Mapping[str, Workload], api: Callable[[str], KubernetesApi], meter: Meter) -> None:
        self._workloads = dict(workloads)
        self._api = api
        self._meter = meter

    def describe(self, service: str) -> Live:
        """Return the workload as it is now."""
        seen = self._look(service)
        up, says = progress(seen)
        ready = up if seen.replicas or up is None else False  # nothing serves where nothing is wanted
        return live_of(seen, ready=ready, says=says, writer=writer_of(self._api(service), seen))

    def validate(self, order: Order) -> None:
        """Let the API server admit, default and check a change without making it."""
        operation = lifecycle_of(order.actions)
        if operation is LifecycleOperation.CREATE:
            self._create(order, dry_run=True)
            return
        seen = self._look(order.service)
        if operation is LifecycleOperation.DELETE:
            self._delete(seen, order, dry_run=True)
            return
        spec = self._change(seen, order)
        check_admitted(seen, spec, self._dry_run(seen, order.etag, spec)["spec"])

    def apply(self, order: Order) -> Operation:
        """Start the change, or go on with what this effect started before."""
        operation = lifecycle_of(order.actions)
        if operation is LifecycleOperation.CREATE:
            return self._create(order)
        seen = self._look(order.service)
        found = self._ours(seen, order.effect_key)
        if found is not None:
            return self._go_on(seen, order, found)
        if operation is LifecycleOperation.DELETE:
            return self._delete(seen, order)
        spec = self._change(seen, order)
        return self._start(seen, order, spec, stamps_template=spec["template"] != seen.spec["template"])

    def restore(self, order: Restore) -> Operation:
        """Start putting a prior template back, or go on with it where it was started before.

        Where the strategy to restore would make a new pod wait for the old one's accelerator, the template goes back
        under Recreate; once it is up, or has failed, a second call of the same order restores the strategy.
        """
        seen = self._look(order.service)
        found = self._ours(seen, order.effect_key)
        if found is not None:
            return self._go_on(seen, order, found)
        if not order.template:
            return self._delete(seen, order)
        parts = parts_of(order.template)
        later = parts["strategy"] if needs_spare(seen, parts["strategy"]) else None
        spec = seen.spec | {
            "template": parts["template"],
            strategy_field(seen.workload.kind): RECREATE if later else parts["strategy"],
        }
        if "progress_deadline_s" in parts:
            spec["progressDeadlineSeconds"] = parts["progress_deadline_s"]
        scaled = any(isinstance(a, SetScaling | Lifecycle) for a in order.actions)
        if "replicas" in parts and (scaled or (parts["replicas"] == 0) != (seen.replicas == 0)):
            spec["replicas"] = parts["replicas"]
        return self._start(seen, order, spec, stamps_template=False, strategy_later=later)

    def shift(self, service: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:  # noqa: ARG002 - refused, whoever asks
        """Refuse: a Service sends requests to every ready pod, and nothing is brought up beside it (ADR 0022)."""
        why = f"a rollout of Kubernetes moves it pod by pod (effect {effect_key} at {etag})"
        raise no_shift(service, revision, why)

    def find(self, service: str, effect_key: str) -> Operation | None:
        """Return the operation of an effect by its stamp at the object, or None."""
        return self._ours(self._look(service), effect_key)

    def operation(self, name: str) -> Operation:
        """Return how far an operation has come."""
        words = name.split("/")
        if len(words) not in {3, 4} or words[0] != "kubernetes" or words[1] not in self._workloads:
            raise unknown_operation(name, "no workload here is its own", hint="look into services.toml")
        try:
            seen = self._look(words[1])
        except NotDeployed as error:
            deleted = len(words) == 4
            says = "it is deleted" if deleted else f"it was deleted: {error.why}"
            return Operation(name=name, done=True, ok=True if deleted else None, says=says)
        says = f"{seen.workload.says} bears its stamp no more: it was deleted and made again, or replaced{_who(seen)}"
        return self._ours(seen, words[2]) or Operation(name=name, done=True, ok=None, says=says)

    def restored(self, service: str, *, template: str, traffic: str) -> bool:
        """Whether template and strategy equal the prior ones, but for our stamp and the number of replicas."""
        try:
            seen = self._look(service)
        except NotDeployed:
            return not template
        if not template:
            return False
        whole = [t.model_dump(mode="json") for t in LATEST]
        return same(text_of(seen), template) and canonical(whole).decode() == traffic

    def measure(self, service: str, revision: str) -> tuple[Measurement, ...]:
        """Measure a revision: its rollout, then one real completion of a ready pod, its tokens and its speed."""
        seen = self._look(service)
        if revision not in {newest_revision(seen), native_revision(seen)}:
            known = {*effects_of(seen.body).values(), *map(set_revision, seen.sets)}
            if revision in known:
                return self._meter.measure(seen, up=None, says=f"{revision} is not the newest any more{_who(seen)}")
            raise no_such_revision(revision, f"{seen.workload.says} has none of that name")
        up, says = progress(seen)
        return self._meter.measure(seen, up=up, says=says)

    def server(self, service: str) -> ModelServer:
        """Return a ready pod of the workload."""
        return self._meter.server(self._look(service))

    def _change(self, seen: Seen, order: Order) -> Json:
        """Return the changed ``spec``."""
        if order.staged:
            raise InputRejected(
                f"{seen.workload.says} was not changed",
                why="nothing is brought up beside it without traffic (ADR 0022)",
                hint="change it in place; with a spare accelerator the old pod serves until the new one is ready",
            )
        if order.revision in set(effects_of(seen.body).values()) | set(map(set_revision, seen.sets)):
            raise state_changed(
                f"{seen.workload.says} was not changed", f"revision {order.revision!r} exists and is not of this effect"
            )
        writer = writer_of(self._api(order.service), seen)
        if writer is not None and writer.reverts:
            raise PolicyRefused(
                f"{seen.workload.says} was not changed", why=writer.who, hint=f"change {writer.place} instead"
            )
        spec = edited(seen, order.actions)
        if spec["template"] != seen.spec["template"] or is_restart(order.actions):
            spec["template"] = stamped(spec["template"], _stamp(order))
        return spec

    def _dry_run(self, seen: Seen, etag: str, spec: Json) -> Json:
        """Return the object as the API server would store it."""
        steps = [*_tests(seen, etag), *spec_steps(seen, spec)]
        checked = self._api(seen.workload.service).patch(seen.workload.path, steps, dry_run=True)
        if spec["template"] != seen.spec["template"]:
            for pod in stuck_pods(seen):
                self._delete_pod(seen, pod, dry_run=True)
        return checked

    def _start(
        self,
        seen: Seen,
        order: Order | Restore,
        spec: Json,
        *,
        stamps_template: bool,
        strategy_later: Json | None = None,
    ) -> Operation:
        """Check, then call once; the digest of what the server made of the template tells later whether it stands."""
        checked = self._dry_run(seen, order.etag, spec)
        if isinstance(order, Order):
            check_admitted(seen, spec, checked["spec"])
        made = digest(bare(checked["spec"]["template"]))
        if stamps_template:
            spec["template"]["metadata"]["annotations"][TEMPLATE] = made
        pods = stuck_pods(seen) if spec["template"] != seen.spec["template"] else ()
        stamp = _stamp(order) | {
            PODS_LATER: " ".join(pod["metadata"]["uid"] for pod in pods) or None,
            TEMPLATE: made,
            EARLIER: earlier_effects(seen) or None,
            STRATEGY_LATER: canonical(strategy_later).decode() if strategy_later else None,
        }
        if seen.replicas and spec.get("replicas") == 0:
            stamp[RESUMES] = str(seen.replicas)
        steps = [*_tests(seen, order.etag), *spec_steps(seen, spec), *stamp_steps(seen, stamp)]
        api = self._api(order.service)
        api.patch(seen.workload.path, steps, within_s=_seconds_to_send(order))
        self._unstick(seen, order, pods)
        return Operation(
            name=_name(seen, order.effect_key), done=False, ok=None, says=f"{order.revision} is rolled out"
        )

    def _create(self, order: Order, *, dry_run: bool = False) -> Operation:
        """Create the workload with the effect's stamp, or find that this effect created it."""
        workload, name = self._workload(order.service), f"kubernetes/{order.service}/{order.effect_key}"
        config = next((a.config for a in order.actions if isinstance(a, Lifecycle)), None)
        assert config is not None, "a creation has a configuration"
        api = self._api(order.service)
        if order.etag != NOT_THERE or api.find(workload.path) is not None:
            found = self._ours(self._look(order.service), order.effect_key)
            if found is not None:
                return found
            raise state_changed(f"{workload.says} was not created", "it stands already, without this effect's stamp")
        stamp = {name: value for name, value in _stamp(order).items() if value is not None}
        checked = api.create(workload.collection, manifest(workload, config, stamp), dry_run=True)
        stamp[TEMPLATE] = digest(bare(checked["spec"]["template"]))
        if not dry_run:
            api.create(workload.collection, manifest(workload, config, stamp), within_s=_seconds_to_send(order))
        return Operation(name=name, done=False, ok=None, says=f"{workload.says} is created")

    def _delete(self, seen: Seen, order: Order | Restore, *, dry_run: bool = False) -> Operation:
        """Delete the workload and its pods; the stamp says whose deletion it is, and leaves the generation as it is."""
        tests, path, api = _tests(seen, order.etag), seen.workload.path, self._api(order.service)
        if not dry_run:
            api.patch(path, [*tests, *deletion_steps(seen, order.effect_key)], within_s=_seconds_to_send(order))
        api.delete(path, uid=seen.uid, dry_run=dry_run, within_s=WRITE_S if dry_run else _seconds_to_send(order))
        return Operation(name=f"{_name(seen, order.effect_key)}/deleted", done=False, ok=None, says="it is deleted")

    def _unstick(self, seen: Seen, order: Order | Restore, pods: tuple[Json, ...]) -> None:
        """Delete the pods, as they were before the change, that a StatefulSet would wait for until they are ready.

        The change stands already, so nothing is raised: what stays is noted at the object, and another call deletes it.
        """
        for pod in pods:
            try:
                self._delete_pod(seen, pod, within_s=_seconds_to_send(order))
            except SreError as error:
                log.warning("kubernetes.pod_not_deleted", pod=pod["metadata"]["name"], error=str(error))

    def _delete_pod(self, seen: Seen, pod: Json, *, dry_run: bool = False, within_s: float = WRITE_S) -> None:
        path = f"/api/v1/namespaces/{seen.workload.namespace}/pods/{pod['metadata']['name']}"
        with suppress(InputRejected, StateConflict):  # it is gone, or another one of that name
            self._api(seen.workload.service).delete(
                path, uid=pod["metadata"]["uid"], dry_run=dry_run, within_s=within_s
            )

    def _go_on(self, seen: Seen, order: Order | Restore, found: Operation) -> Operation:
        """Do what remains of an effect: delete the pods that it noted, or restore the strategy of a roll-back."""
        if not found.remains:
            return found
        pods = noted_pods(seen)
        for pod in pods:
            self._delete_pod(seen, pod, within_s=_seconds_to_send(order))
        return found.with_(says="the pods are deleted", remains="") if pods else self._finish(seen, order)

    def _finish(self, seen: Seen, order: Order | Restore) -> Operation:
        """Restore the strategy of a template that was put back under another one, if nothing else was changed since."""
        if our_revision(seen) is None:
            raise StateConflict(
                f"the strategy of {seen.workload.says} was not restored",
                why=f"its template was changed since we put it back{_who(seen)}",
                hint="look at the workload and restore its strategy by hand",
            )
        field = strategy_field(seen.workload.kind)
        steps = [
            *_tests(seen, seen.etag),
            {"op": "test", "path": f"/metadata/annotations/{EFFECT_LABEL}", "value": order.effect_key},
            {"op": "replace", "path": f"/spec/{field}", "value": strategy_later(seen)},
            {"op": "remove", "path": f"/metadata/annotations/{STRATEGY_LATER}"},
        ]
        self._api(seen.workload.service).patch(seen.workload.path, steps, within_s=_seconds_to_send(order))
        return Operation(name=_name(seen, order.effect_key), done=False, ok=None, says="the strategy is restored")

    def _ours(self, seen: Seen, effect_key: str) -> Operation | None:
        """Look for the stamp; say how far the effect is, or what followed it."""
        effects = effects_of(seen.body)
        name, held = _name(seen, effect_key), annotations(seen.body)
        if seen.deleted_by == effect_key:
            return Operation(name=f"{name}/deleted", done=False, ok=None, says="it is being deleted")
        if effect_key not in effects:
            return None
        if held.get(EFFECT_LABEL) != effect_key:
            says = f"a later change followed: {list(effects.values())[-1]}"
            return Operation(name=name, done=True, ok=None, says=says)
        if our_revision(seen) is None:
            return Operation(name=name, done=True, ok=None, says=f"the template was changed since{_who(seen)}")
        ok, says = progress(seen)
        left = remaining(seen, ok=ok)
        revision = native_revision(seen) if not left else None
        return Operation(name=name, done=ok is not None and not left, ok=ok, says=says, remains=left, revision=revision)

    def _look(self, service: str) -> Seen:
        return look(self._api(service), self._workload(service))

    def _workload(self, service: str) -> Workload:
        return watched(self._workloads, service, "Kubernetes")


def _tests(seen: Seen, etag: str) -> list[Json]:
    """Return the conditions of a patch: the very object, in the generation that the change was made for.

    Raises:
        StateConflict: It is another one already.
    """
    if etag != seen.etag:
        raise state_changed(
            f"{seen.workload.says} was not changed",
            f"it is {seen.etag} now, and the change was made for {etag}{_who(seen)}",
        )
    return [
        {"op": "test", "path": "/metadata/uid", "value": seen.uid},
        {"op": "test", "path": "/metadata/generation", "value": seen.generation},
    ]


def _stamp(order: Order | Restore) -> dict[str, str | None]:
    return {EFFECT_LABEL: order.effect_key, INCIDENT: order.incident, REVISION: order.revision}


def _seconds_to_send(order: Order | Restore) -> float:
    return seconds_to_send(order.lease_end, order.service)


def _name(seen: Seen, effect_key: str) -> str:
    return f"kubernetes/{seen.workload.service}/{effect_key}"


def _who(seen: Seen) -> str:
    """Say who wrote the wanted state last."""
    manager = manager_of(seen.body)
    return f"; the API server names {manager} as the last writer" if manager else ""
