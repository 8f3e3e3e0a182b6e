"""Cloud TPU as the platform: a change is new metadata of the node, carried out by our script on it."""

from collections.abc import Mapping
from typing import Any

from agent.adapters.platform.refusals import no_shift, no_such_revision, unknown_operation
from agent.adapters.platform.rehearsal.template import bare, stamped
from agent.adapters.platform.tpu_vm import change
from agent.adapters.platform.tpu_vm.api import TpuApi
from agent.adapters.platform.tpu_vm.describe import NodeRef, Seen, live_of, progress
from agent.adapters.platform.tpu_vm.measure import Meter
from agent.adapters.platform.tpu_vm.node_metadata import EFFECTS, SERVER, Effect
from agent.adapters.platform.tpu_vm.read import read_node
from agent.adapters.platform.traffic import LATEST, parsed_traffic
from agent.core.change.verification import Measurement
from agent.core.plan.action import LifecycleOperation
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.service.serving import Live
from agent.errors import InputRejected
from agent.ports.clock import Clock
from agent.ports.control import LeaseEnd
from agent.ports.model_server import ModelServer
from agent.ports.platform import NotDeployed, Operation, Order, Restore, seconds_to_send


class TpuVmPlatform:
    """TPU VMs, each with one container that our script on the node keeps as its metadata says.

    Cloud TPU takes no precondition for new metadata: the state is read right before it is written, and a change that
    somebody else makes in that moment is overwritten.
    """

    def __init__(self, api: TpuApi, nodes: Mapping[str, NodeRef], meter: Meter, clock: Clock) -> None:
        self._api, self._nodes, self._meter, self._clock = api, dict(nodes), meter, clock

    def describe(self, service: str) -> Live:
        """Return the service as it is now."""
        return live_of(self._seen(service))

    def validate(self, order: Order) -> None:
        """Check a change without making it: Cloud TPU itself checks nothing beforehand."""
        change.require_possible(order.actions, staged=order.staged)
        seen = self._seen(order.service)
        if lifecycle_of(order.actions) is LifecycleOperation.DELETE:
            change.require_deletable(seen)
        else:
            change.require_changeable(seen, order.actions)

    def apply(self, order: Order) -> Operation:
        """Give the node new metadata, or return what this effect began before."""
        change.require_possible(order.actions, staged=order.staged)
        if lifecycle_of(order.actions) is LifecycleOperation.DELETE:
            return self._delete(order)
        seen = self._seen(order.service)
        before = seen.metadata.effect(order.effect_key)
        if before is not None:
            return change.operation_of(seen, before)
        change.require_unchanged(seen, order)
        node = change.require_changeable(seen, order.actions)
        template = stamped(seen.template, order.revision, order.effect_key, order.incident, actions=order.actions)
        return self._write(seen, node, order, template)

    def restore(self, order: Restore) -> Operation:
        """Give the node its prior metadata again, or return what this effect began before."""
        seen = self._seen(order.service)
        before = seen.metadata.effect(order.effect_key)
        if before is not None:
            return change.operation_of(seen, before)
        change.require_unchanged(seen, order)
        if not order.template:
            why = "a TPU node is not created by the agent, so nothing of it is removed"
            raise InputRejected("the change was refused", why=why, hint="look at the service")
        node = change.require_changeable(seen, ())
        return self._write(seen, node, order, stamped(order.template, order.revision, order.effect_key, order.incident))

    def shift(self, service: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:  # noqa: ARG002 - there is one server, whoever asks
        """Refuse: there is one server, and it has all the traffic."""
        why = f"a TPU node runs one server, and nothing was brought up beside it ({effect_key} at {etag})"
        raise no_shift(service, revision, why)

    def find(self, service: str, effect_key: str) -> Operation | None:
        """Return the operation of an effect, or None where there is no trace of it."""
        seen = self._seen(service)
        effect = seen.metadata.effect(effect_key)
        return change.operation_of(seen, effect) if effect is not None else None

    def operation(self, name: str) -> Operation:
        """Return how far an operation has come."""
        words = name.split("/")
        known = len(words) == 4 and words[0] == "tpu_vm" and words[1] in self._nodes
        if known and words[2] == "deletions":
            return self._deletion(words[1], name)
        found = self.find(words[1], words[3]) if known and words[2] == "effects" else None
        if found is None:
            raise unknown_operation(name, "no effect on its node has that stamp")
        return found

    def restored(self, service: str, *, template: str, traffic: str) -> bool:
        """Whether template and traffic equal the prior ones, but for revision name and stamp."""
        try:
            seen = self._seen(service)
        except NotDeployed:
            return not template
        return bool(template) and bare(seen.template) == bare(template) and parsed_traffic(traffic) == LATEST

    def measure(self, service: str, revision: str) -> tuple[Measurement, ...]:
        """Measure a revision: ready, one real completion, token counters, speed."""
        seen = self._seen(service)
        ready = seen.report.ready_revision if seen.report is not None else None
        known = {seen.revision, ready, *(e.revision for e in seen.metadata.effects.effects)}
        if revision not in known:
            raise no_such_revision(revision, f"TPU node {service!r} had no revision of that name")
        return self._meter.measure(seen, revision)

    def server(self, service: str) -> ModelServer:
        """Return the server of the node, where it serves."""
        return self._meter.server(self._seen(service))

    def _seen(self, service: str) -> Seen:
        """Read a node, or its queued resource where it has none.

        Raises:
            InputRejected: The service is not one of ours.
            NotDeployed: Neither is there.
        """
        ref = self._nodes.get(service)
        if ref is None:
            raise InputRejected(
                f"there is no TPU node {service!r}",
                why=f"services.toml names {', '.join(sorted(self._nodes)) or 'none'} on tpu_vm",
                hint="add it to services.toml, or name one of those",
            )
        return read_node(self._api, ref, self._clock.now())

    def _write(self, seen: Seen, node: Any, order: Order | Restore, template: str) -> Operation:
        newest = next((e for e in seen.metadata.effects.effects if e.revision == seen.revision), None)
        at = progress(seen)
        ok = change.outcome(newest, at) if newest is not None else None
        effect = Effect(key=order.effect_key, revision=order.revision, ends=change.stops(template))
        effects = seen.metadata.next_effects(effect, ok=ok, says=at.says)
        metadata = dict(node.metadata) | {SERVER: template, EFFECTS: effects}
        left_s = seconds_to_send(order.lease_end, order.service)
        self._api.set_metadata(seen.ref.node, metadata, within_s=left_s)
        name = f"tpu_vm/{order.service}/effects/{order.effect_key}"
        return Operation(name=name, done=False, ok=None, says=f"{order.revision} was given to the node")

    def _delete(self, order: Order) -> Operation:
        name = f"tpu_vm/{order.service}/deletions/{order.effect_key}"
        try:
            seen = self._seen(order.service)
        except NotDeployed:
            return self._deletion(order.service, name)
        change.require_unchanged(seen, order)
        queued = change.require_deletable(seen)
        left_s = seconds_to_send(order.lease_end, order.service)
        self._api.delete_queued_resource(queued, within_s=left_s)
        return self._deletion(order.service, name)

    def _deletion(self, service: str, name: str) -> Operation:
        try:
            says = progress(self._seen(service)).says
        except NotDeployed:
            return Operation(name=name, done=True, ok=True, says="the queued resource is gone")
        return Operation(name=name, done=False, ok=None, says=says)
