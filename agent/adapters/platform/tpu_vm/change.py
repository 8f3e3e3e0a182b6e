"""What may be changed on a TPU node, and how far a change of ours has come."""

from typing import Any, Final

from agent.adapters.platform.refusals import require_kinds, require_same
from agent.adapters.platform.rehearsal.template import template_of
from agent.adapters.platform.server_flags import flag_without_effect
from agent.adapters.platform.tpu_vm.describe import HOLDS_QUOTA, Progress, Seen, etag_of, progress
from agent.adapters.platform.tpu_vm.node_metadata import Effect
from agent.core.plan.action import (
    Action,
    ForPerson,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetEnv,
    SetFlag,
    SetModel,
    SetStartupProbe,
    SetTerminationGrace,
)
from agent.core.plan.lifecycle import lifecycle_of
from agent.errors import InputRejected
from agent.ports.platform import Operation, Order, Restore

POSSIBLE: Final = (SetFlag, SetEnv, SetModel, SetStartupProbe, SetTerminationGrace, Restart, Lifecycle, ForPerson)
CREATE_HINT: Final = (
    "create it yourself: gcloud compute tpus queued-resources create, with the startup script of docs/tpu.md"
)


def require_possible(actions: tuple[Action, ...], *, staged: bool) -> None:
    """Refuse what one node cannot do: there is no other hardware and no second container.

    Raises:
        InputRejected: An action is of that sort.
    """
    if lifecycle_of(actions) is LifecycleOperation.CREATE:
        raise _refused("a queued resource may wait for days, and takes quota while it waits", CREATE_HINT)
    require_kinds(actions, POSSIBLE, place="one TPU node", staged=staged)


def require_changeable(seen: Seen, actions: tuple[Action, ...]) -> Any:
    """Return the ``Node`` that carries the change out; refuse one that nothing on it would carry out.

    Raises:
        InputRejected: The node is not there or not ours to change, or nobody reads the flag.
    """
    node = seen.node
    if node is None or node.state.name != "READY":
        raise _refused(progress(seen).says, "wait for the node, or see to its queued resource: docs/tpu.md")
    if not seen.metadata.template:
        raise _refused(progress(seen).says, "use the startup script of the agent: docs/tpu.md says how")
    if len(node.network_endpoints) > 1:
        why = f"the node has {len(node.network_endpoints)} workers, and a change covers one"
        name = node.name.rpartition("/")[2]
        hint = "its hosts must restart together: change it yourself on all of them, with gcloud compute tpus tpu-vm ssh"
        raise _refused(why, f"{hint} {name} --worker=all")
    for action in actions:
        if why := flag_without_effect(seen.config, action):
            raise _refused(why, "change the metadata vllm-server of the node yourself")
    return node


def require_deletable(seen: Seen) -> str:
    """Return the queued resource to delete: only what holds quota, serves nothing and does not come back.

    Raises:
        InputRejected: It is in another state.
    """
    queued = seen.ref.queued_resource
    state = seen.queued.state.state.name if seen.queued is not None else "without a queued resource"
    if queued is None or seen.node is not None or state not in HOLDS_QUOTA:
        what = "its node exists" if seen.node is not None else f"it is {state}"
        why = f"only a suspended or failed queued resource without a node is deleted, and {what}"
        raise _refused(why, "stop it instead; another node may take hours to come: sre-agent change NAME --stop")
    return queued


def require_unchanged(seen: Seen, order: Order | Restore) -> None:
    """Refuse a change that was made for another state, or whose revision's name is taken.

    Raises:
        StateConflict: The service changed since.
    """
    revisions = {seen.revision, *(e.revision for e in seen.metadata.effects.effects)}
    require_same(f"TPU node {order.service!r}", order, etag=etag_of(seen), revisions=revisions)


def stops(template: str) -> bool:
    """Whether a template runs no container."""
    return template_of(template).config.max_instances == 0


def operation_of(seen: Seen, effect: Effect) -> Operation:
    """Return how far a change of ours has come."""
    name = f"tpu_vm/{seen.ref.service}/effects/{effect.key}"
    if effect.revision != seen.revision:
        says = effect.says or f"another revision took the place of {effect.revision}"
        return Operation(name=name, done=True, ok=effect.ok, says=says)
    at = progress(seen)
    ok = outcome(effect, at)
    return Operation(name=name, done=ok is not None, ok=ok, says=f"{effect.revision}: {at.says}")


def outcome(effect: Effect, at: Progress) -> bool | None:
    """Return how the newest change ended; None while nobody knows."""
    if effect.ends:
        return True if at.ended else None
    return at.ready


def _refused(why: str, hint: str) -> InputRejected:
    return InputRejected("the change was refused", why=why, hint=hint)
