"""One worker at a time changes a service: its turn is a lease, asked again right before the call."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from agent.core.incident.incident import Incident
from agent.errors import SreError, StateConflict
from agent.ports.control import Lease
from agent.ports.stage_context import StageContext
from agent.stages.shared.kill_switch import ANSWER_S, changes_stopped


@contextmanager
def service_lease(context: StageContext, service: str) -> Iterator[Lease | None]:
    """Take the right to change a service, and give it back at the end; None while another worker has it.

    A worker that dies keeps it until its time is over. It is taken for each thread, because two threads of a process
    are rivals like two processes.

    Raises:
        DependencyFailed: Nobody knows whose turn it is; nothing may be changed.
    """
    holder = f"{context.holder}/{threading.get_ident()}"
    control = context.control_store()
    name = f"service/{service}"
    answer = control.acquire(name, holder, for_s=context.rules.times.lease_s, now=context.clock.now())
    lease = answer if isinstance(answer, Lease) and (answer.name, answer.holder) == (name, holder) else None
    try:
        yield lease
    finally:
        if lease is not None:
            with suppress(SreError):  # it ends by its time
                control.release(lease)


def final_preflight(context: StageContext, lease: Lease) -> str:
    """Return why the call that comes next must not be made, or nothing; nothing may stand between this and the call.

    Switch and lease are two questions, and a worker may sleep between them: answers count only when both came within
    ``ANSWER_S`` by the clock, and the lease must last at least as long from then on.

    Raises:
        StateConflict: The turn is over, or this worker slept, and another may have gone on.
        DependencyFailed: Nobody knows how lease or switch stand; nothing may be changed, and the step is tried again.
    """
    began = context.clock.now()
    stopped = changes_stopped(context)
    soon = timedelta(seconds=ANSWER_S)
    ours = context.control_store().holds(lease, began + soon) is True
    if not ours or not timedelta() <= context.clock.now() - began <= soon:
        raise StateConflict(
            f"nothing was done to {lease.name!r}",
            why="the lease was over before the call, or the last look took too long; another worker may have gone on",
            hint="no action needed: the next worker checks the live state",
        )
    return stopped


def require_unchanged(context: StageContext, incident: Incident) -> None:
    """Refuse to go on with what was decided before the turn began, where the incident was written since.

    A worker that slept in between may find it far on, its effect given up or undone (the simulation's seed 508).

    Raises:
        StateConflict: The incident was written meanwhile; load it again and look.
    """
    if context.store.load(incident.id).version != incident.version:
        raise StateConflict(
            f"nothing was done to {incident.service!r}",
            why=f"incident {incident.id!r} was written since this worker loaded it",
            hint="no action needed: it is loaded again",
        )
