"""What every platform refuses in the same words, such as a service that is not its own or changed since."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from agent.core.plan.action import Action
from agent.core.plan.lifecycle import ends_service
from agent.errors import InputRejected, StateConflict
from agent.ports.platform import HINTS, Order, Restore

T = TypeVar("T")


def watched(services: Mapping[str, T], service: str, platform: str) -> T:
    """Return what services.toml says of a service.

    Args:
        services: What it says of those on this platform.
        service: Which one.
        platform: Its name for people, behind "on".

    Raises:
        InputRejected: It is not among them.
    """
    found = services.get(service)
    if found is None:
        raise InputRejected(
            f"service {service!r} is not on {platform}",
            why=f"services.toml has {', '.join(sorted(services)) or 'none'} there",
            hint="add it to services.toml",
        )
    return found


def no_such_revision(revision: str, why: str) -> InputRejected:
    """Say that a revision was not measured, and why there is none of that name."""
    return InputRejected(
        f"revision {revision!r} was not measured", why=why, hint="describe the service to see its revisions"
    )


def unknown_operation(name: str, why: str, *, hint: str = "read back the effect's stamp") -> InputRejected:
    """Say that an operation's name is none that was given out here."""
    return InputRejected(f"operation {name!r} is unknown", why=why, hint=hint)


def state_changed(what: str, why: str) -> StateConflict:
    """Say that nothing was done, as a service is not what the plan was made for."""
    return StateConflict(what, why=why, hint=HINTS[StateConflict])


def require_same(what: str, order: Order | Restore, *, etag: str, revisions: Collection[str] = ()) -> None:
    """Refuse a change that was made for another etag than the present one, or whose revision's name is taken.

    Raises:
        StateConflict: It changed since.
    """
    if etag != order.etag:
        raise state_changed(f"{what} was not changed", f"its etag is {etag}, the change was made for {order.etag}")
    if order.revision in revisions:
        why = f"revision {order.revision!r} stands already, without this effect's stamp"
        raise state_changed(f"{what} was not changed", why)


def require_kinds(actions: tuple[Action, ...], possible: tuple[type, ...], *, place: str, staged: bool) -> None:
    """Refuse what a place cannot do: actions of other kinds (it can always stop), a second server beside the first.

    Raises:
        InputRejected: It is asked for.
    """
    strange = [a.kind for a in actions if not isinstance(a, possible) and not ends_service(a)]
    if strange or staged:
        what = ", ".join(strange) or "a second server beside the first"
        raise InputRejected("the change was refused", why=f"{place} cannot do that: {what}", hint="make another plan")


def no_shift(service: str, revision: str, why: str) -> InputRejected:
    """Say that traffic was not shifted, on a platform that brings nothing up beside what serves."""
    return InputRejected(
        f"traffic of {service!r} was not shifted to {revision!r}",
        why=why,
        hint="no action needed: the newest one that is ready has the traffic",
    )
