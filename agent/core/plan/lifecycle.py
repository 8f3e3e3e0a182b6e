"""What it means to create, start, stop or delete a service: what stops answering, how sure it is, how it is undone."""

from agent.core.plan.action import NO_SERVICE, Action, Lifecycle, LifecycleOperation, SetScaling
from agent.core.plan.plan import Risk
from agent.core.service.serving import Live, Traffic

NOT_THERE = "absent"
"""The version token of a service that is not there."""


def lifecycle_of(actions: tuple[Action, ...]) -> LifecycleOperation | None:
    """Return what the actions make of the service as a whole; None where they only change it.

    Scaling to zero is a stop, by whatever word it was asked for.
    """
    found = next((a.operation for a in actions if isinstance(a, Lifecycle)), None)
    return found or (LifecycleOperation.STOP if any(map(_to_zero, actions)) else None)


def ends_service(action: Action) -> bool:
    """Whether nothing answers after the action."""
    ends = {LifecycleOperation.STOP, LifecycleOperation.DELETE}
    return _to_zero(action) or (isinstance(action, Lifecycle) and action.operation in ends)


def _to_zero(action: Action) -> bool:
    return isinstance(action, SetScaling) and action.max_instances == 0


def stops_answering(service: str, actions: tuple[Action, ...]) -> str:
    """Return what stops answering, in one line for people; nothing where all goes on."""
    match lifecycle_of(actions):
        case LifecycleOperation.STOP:
            return f"{service} answers no requests until it is started again"
        case LifecycleOperation.DELETE:
            return f"{service} answers no requests any more, and its address and settings are gone"
        case _:
            return ""


def undo_of(service: str, operation: LifecycleOperation, live: Live) -> str:
    """Return how it would be undone, one sentence."""
    low, high = live.config.min_instances, live.config.max_instances
    return {
        LifecycleOperation.CREATE: f"if {service} does not come up, what this change created is removed again",
        LifecycleOperation.START: f"{service} is stopped again",
        LifecycleOperation.STOP: f"{service} is started again with {low} to {high or 1} instances",
        LifecycleOperation.DELETE: "a deletion cannot be undone",
    }[operation]


def risk_of(operation: LifecycleOperation, live: Live) -> tuple[Risk, tuple[str, ...]]:
    """Return how much could go wrong, and why."""
    if operation is LifecycleOperation.DELETE:
        return Risk.HIGH, ("a deletion cannot be undone",)
    if operation is LifecycleOperation.STOP:
        return (Risk.HIGH, ("the service answers now",)) if live.ready else (Risk.LOW, ())
    if operation is LifecycleOperation.CREATE:
        return Risk.MEDIUM, ("computed, not tried on this hardware",)
    return Risk.LOW, ()


def already_so(service: str, operation: LifecycleOperation, live: Live) -> str:
    """Return why there is nothing to do, or nothing."""
    stopped, there = live.config.max_instances == 0, live.config != NO_SERVICE
    said = {
        LifecycleOperation.CREATE: there and f"{service} exists",
        LifecycleOperation.START: there and not stopped and f"{service} is not stopped",
        LifecycleOperation.STOP: stopped and f"{service} is stopped",
        LifecycleOperation.DELETE: not there and f"{service} does not exist",
    }[operation]
    return said or ""


def absent(service: str, platform: str) -> Live:
    """Return a service that is configured and not there, as what a creation starts from."""
    return Live(
        service=service,
        platform=platform,
        config=NO_SERVICE,
        uid="",
        generation=0,
        etag=NOT_THERE,
        template="",
        traffic=(Traffic(percent=100),),
        ready=False,
    )
