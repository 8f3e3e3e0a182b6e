"""How far a rollout is: the operation's word, held against the revision and the service it speaks of."""

from typing import Any, Final

from agent.adapters.platform.cloud_run.describe import condition_says, short, state_of
from agent.adapters.platform.cloud_run.template import traffic_of
from agent.adapters.platform.refusals import unknown_operation
from agent.core.service.serving import Traffic
from agent.core.value import Value
from agent.ports.platform import Operation

_AIMS: Final = frozenset({"revisions", "traffic", "scaling", "deletion"})


class Work(Value):
    """What an operation's name of ours holds: the platform's own name, and what to look at where that is gone.

    Attributes:
        service: Full resource name.
        aim: ``revisions/NAME`` for a new revision, ``traffic/NAME`` for a shift, ``scaling/NAME`` for a stop and
            ``deletion/NAME`` for a deletion, with the name that the effect's revision would have.
        native: The platform's operation, None where its name was lost with the answer.
    """

    service: str
    aim: str
    native: str | None = None

    @property
    def name(self) -> str:
        """The name to store; the platform's own name stands in front, so that people can look it up."""
        return f"{self.native or ''}#{self.service}/{self.aim}"


def work_of(name: str) -> Work:
    """Read an operation's name.

    Raises:
        InputRejected: It is none of ours.
    """
    native, mark, rest = name.partition("#")
    parts = rest.rsplit("/", 2)
    if not mark or len(parts) != 3 or parts[1] not in _AIMS:
        raise unknown_operation(name, "it is no name of ours")
    return Work(service=parts[0], aim=f"{parts[1]}/{parts[2]}", native=native or None)


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
    wanted = work.aim.rsplit("/", 1)[-1]
    error = native.error.message if native is not None and native.HasField("error") else ""
    state, says = _of_revision(revision)
    if state == "SUCCEEDED":
        if service.reconciling and short(service.latest_created_revision) == wanted:
            return _operation(work, None, f"{wanted} is ready, its traffic is being moved")
        return _operation(work, True, f"{wanted} is ready")
    if state == "FAILED":
        return _operation(work, False, says or error or f"{wanted} did not come up")
    if revision is None:
        return _not_made(work, native, service, error)
    return _operation(work, None, f"{wanted} is starting" + (f"; {error}" if error else ""))


def shifting(work: Work, service: Any) -> Operation:
    """Return how far a shift of traffic is."""
    wanted = work.aim.rsplit("/", 1)[-1]
    if not gives_all(traffic_of(service.traffic), wanted, service):
        return _operation(work, False, f"the traffic does not go to {wanted}")
    if service.reconciling:
        return _operation(work, None, f"the traffic is being moved to {wanted}")
    if state_of(service.terminal_condition) == "FAILED":
        return _operation(work, False, condition_says(service.terminal_condition))
    return _operation(work, True, f"all traffic goes to {wanted}")


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
    wanted = work.aim.rsplit("/", 1)[-1]
    ours = service.template.revision == wanted
    if native is not None and not native.done:
        return _operation(work, None, f"{wanted} is not there yet")
    if error:
        return _operation(work, False, error)
    if ours and service.reconciling:
        return _operation(work, None, f"{wanted} is not there yet")
    if ours and state_of(service.terminal_condition) == "FAILED":
        return _operation(work, False, condition_says(service.terminal_condition))
    return Operation(name=work.name, done=True, ok=None, says=f"{wanted} is not there, and nothing tells why")


def _operation(work: Work, ok: bool | None, says: str) -> Operation:  # noqa: FBT001 - three-valued
    return Operation(name=work.name, done=ok is not None, ok=ok, says=says)
