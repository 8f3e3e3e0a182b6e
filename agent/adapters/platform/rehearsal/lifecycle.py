"""Services of a rehearsal that come and go: created, stopped, deleted, and what may be changed of them."""

from datetime import datetime

from agent.adapters.platform.refusals import state_changed
from agent.adapters.platform.rehearsal.state_file import OperationRow, ServiceRow, State
from agent.adapters.platform.rehearsal.template import stamped, template_of
from agent.adapters.platform.traffic import LATEST
from agent.core.plan.action import NO_SERVICE, LifecycleOperation
from agent.core.plan.lifecycle import NOT_THERE, lifecycle_of
from agent.core.value import digest
from agent.ports.platform import NotDeployed, Order, Restore


def end(state: State, row: ServiceRow, order: Order | Restore, template: str, *, now: datetime) -> OperationRow:
    """End what serves, at once: a stop keeps the service without instances, a deletion leaves nothing.

    Args:
        state: Where it is written.
        row: The service; one that is deleted already is written so.
        order: What orders it.
        template: What the stopped service holds.
        now: The time.
    """
    before = template_of(row.template).config
    deletes = isinstance(order, Order) and lifecycle_of(order.actions) is LifecycleOperation.DELETE
    deleted = row.deleted or deletes
    resumes = row.resumes_with if before.max_instances == 0 else (before.min_instances, before.max_instances or 1)
    state.keep_service(
        row.with_(
            template=row.template if deleted else template,
            generation=row.generation + 1,
            writes=row.writes + 1,
            ready=False,
            message="it is stopped",
            deleted=deleted,
            resumes_with=resumes,
        )
    )
    operation = OperationRow(
        name=operation_name(row.name, order.effect_key),
        service=row.name,
        effect_key=order.effect_key,
        revision=order.revision,
        ends_at=now,
        done=True,
        ok=True,
        says=f"{row.name} is {'deleted' if deleted else 'stopped'}",
    )
    state.keep_operation(operation)
    return operation


def standing(state: State, order: Order) -> ServiceRow:
    """Return what the order changes; a creation starts from nothing, as another service of that name.

    Raises:
        NotDeployed: It was deleted.
        StateConflict: It is to be created, and stands.
    """
    if lifecycle_of(order.actions) is not LifecycleOperation.CREATE:
        return deployed(state, order.service)
    row = found(state.service(order.service))
    if not row.deleted:
        raise state_changed(
            f"service {order.service!r} was not created", "it stands already, without this effect's stamp"
        )
    return row.with_(
        uid=digest(["uid", row.name, row.writes])[:32],
        generation=0,
        template=stamped(NO_SERVICE, "", None, None),
        traffic=LATEST,
        follow=None,
        latest_ready=None,
        deleted=False,
        resumes_with=None,
    )


def found(row: ServiceRow | None) -> ServiceRow:
    """Return a service of which the rehearsal knows."""
    assert row is not None, "every scenario's service is written when the rehearsal opens"
    return row


def deployed(state: State, service: str) -> ServiceRow:
    """Return a service that is there.

    Raises:
        NotDeployed: It was deleted.
    """
    row = found(state.service(service))
    if row.deleted:
        raise NotDeployed(
            f"service {service!r} was not found",
            why="it was deleted",
            hint="create it again",
        )
    return row


def require_etag(row: ServiceRow, etag: str) -> None:
    """Refuse a change that was made for another state.

    Raises:
        StateConflict: The service changed since.
    """
    if etag_of(row) != etag:
        raise state_changed(
            f"service {row.name!r} was not changed", f"its etag is {etag_of(row)}, the change was made for {etag}"
        )


def etag_of(row: ServiceRow) -> str:
    """Return what changes with every change; of a service that is being created, that it was not there."""
    if template_of(row.template).config == NO_SERVICE:
        return NOT_THERE
    return f'"{digest([row.uid, row.writes])[:16]}"'


def operation_name(service: str, effect_key: str) -> str:
    """Return the name of an effect's operation."""
    return f"rehearsal/{service}/operations/{effect_key}"
