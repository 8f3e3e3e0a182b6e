"""How far a rollout is: the operation's word, held against the revision and the service it speaks of."""

from typing import Any

from agent.adapters.platform.cloud_run.describe import condition_says, short, state_of
from agent.adapters.platform.cloud_run.template import traffic_of
from agent.adapters.platform.work import Work
from agent.core.service.serving import Traffic
from agent.ports.platform import Operation


def rollout(work: Work, native: Any | None, service: Any, revision: Any | None) -> Operation:
    """Return how far a new revision is.

    Neither the operation nor the service alone is believed: a revision that is ready is up, whatever the operation
    says; an operation that ended well over a revision that is not ready ended badly.

    Args:
        work: What we look for.
        native: The platform's ``Operation``, None where it is known no more.
        service: The ``Service``.
        revision: The ``Revision``, None where it was not made.
    """
    wanted = work.revision
    error = native.error.message if native is not None and native.HasField("error") else ""
    state, says = _of_revision(revision)
    if state == "SUCCEEDED":
        if service.reconciling and short(service.latest_created_revision) == wanted:
            return work.operation(None, f"{wanted} is ready, its traffic is being moved")
        return work.operation(True, f"{wanted} is ready")
    if state == "FAILED":
        return work.operation(False, says or error or f"{wanted} did not come up")
    if revision is None:
        return _not_made(work, native, service, error)
    return work.operation(None, f"{wanted} is starting" + (f"; {error}" if error else ""))


def shifting(work: Work, service: Any) -> Operation:
    """Return how far a shift of traffic is."""
    wanted = work.revision
    if not gives_all(traffic_of(service.traffic), wanted, service):
        return work.operation(False, f"the traffic does not go to {wanted}")
    if service.reconciling:
        return work.operation(None, f"the traffic is being moved to {wanted}")
    if state_of(service.terminal_condition) == "FAILED":
        return work.operation(False, condition_says(service.terminal_condition))
    return work.operation(True, f"all traffic goes to {wanted}")


def gives_all(traffic: tuple[Traffic, ...], revision: str, service: Any) -> bool:
    """Whether a traffic policy sends every request to ``revision``."""
    latest = short(service.latest_ready_revision)
    return bool(traffic) and all((t.revision or latest) == revision for t in traffic if t.percent)


def _of_revision(revision: Any | None) -> tuple[str, str]:
    if revision is None:
        return "", ""
    ready = next((c for c in revision.conditions if _type(c) == "Ready"), None)
    return ("PENDING", "") if ready is None else (state_of(ready), condition_says(ready))


def _type(condition: Any) -> str:
    return str(condition.type_)


def _not_made(work: Work, native: Any | None, service: Any, error: str) -> Operation:
    wanted = work.revision
    ours = service.template.revision == wanted
    if native is not None and not native.done:
        return work.operation(None, f"{wanted} is not there yet")
    if error:
        return work.operation(False, error)
    if ours and service.reconciling:
        return work.operation(None, f"{wanted} is not there yet")
    if ours and state_of(service.terminal_condition) == "FAILED":
        return work.operation(False, condition_says(service.terminal_condition))
    return work.not_made()
