"""What our changes make of a server on record: created, changed, stopped or deleted, and how far they have come."""

from datetime import datetime
from pathlib import Path
from typing import Final

from agent.adapters.platform.refusals import require_same
from agent.adapters.platform.rehearsal.template import stamped, template_of
from agent.core.plan.action import (
    NO_SERVICE,
    Action,
    ForPerson,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetEnv,
    SetFlag,
    SetModel,
    SetStartupProbe,
)
from agent.core.plan.lifecycle import NOT_THERE, lifecycle_of
from agent.core.value import digest
from agent.ports.host import Stage, Start, State
from agent.ports.platform import NotDeployed, Operation, Order, Restore

POSSIBLE: Final = (SetFlag, SetEnv, SetModel, SetStartupProbe, Restart, Lifecycle, ForPerson)


def to_create(state: State | None, order: Order, folder: Path, now: datetime) -> State | None:
    """Return what is on record, or for a creation an empty record, of another service than one that was deleted."""
    creates = lifecycle_of(order.actions) is LifecycleOperation.CREATE
    if not creates or (state is not None and not state.gone):
        return state
    if state is not None and state.effect(order.effect_key) is not None:
        return state
    uid = digest([order.service, str(folder), now.isoformat(), order.effect_key])[:32]
    return State(service=order.service, uid=uid, template=stamped(NO_SERVICE, "", None, None))


def require_deployed(state: State) -> State:
    """Return what is on record of a service that is there.

    Raises:
        NotDeployed: It was deleted.
    """
    if state.gone:
        raise NotDeployed(
            f"server {state.service!r} was not found",
            why="it was deleted",
            hint="start it: sre-agent watch -- vllm serve MODEL",
        )
    return state


def free(state: State, order: Order | Restore) -> None:
    """Refuse a change that was made for another state, or whose start would take another one's name.

    Raises:
        StateConflict: The server changed since.
    """
    etag = NOT_THERE if template_of(state.template).config == NO_SERVICE else state.etag
    require_same(f"server {state.service!r}", order, etag=etag, revisions={start.revision for start in state.starts})


def deletes(order: Order | Restore) -> bool:
    """Whether nothing of the service is to stay."""
    if isinstance(order, Restore):
        return not order.template
    return lifecycle_of(order.actions) is LifecycleOperation.DELETE


def resumed(state: State) -> tuple[Action, ...]:
    """Return what a start by hand changes: a server that was stopped has its one instance again."""
    stopped = template_of(state.template).config.max_instances == 0
    return (Lifecycle(operation=LifecycleOperation.START),) if stopped else ()


def report(state: State, start: Start, effect_key: str) -> Operation:
    """Return how far an effect has come with the start that it made or ended."""
    name = f"host/{state.service}/operations/{effect_key}"
    if start.ended_by == effect_key:
        ended = start.stage is Stage.ENDED
        says = f"{start.revision} {'has ended' if ended else 'is ending'}"
        return Operation(name=name, done=ended, ok=True if ended else None, says=says)
    if start.ready_at is not None:
        return Operation(name=name, done=True, ok=True, says=f"{start.revision} came up")
    if start.stage is Stage.ENDED:
        return Operation(name=name, done=True, ok=False, says=start.ending)
    return Operation(name=name, done=False, ok=None, says=f"{start.revision} is {start.stage}")
