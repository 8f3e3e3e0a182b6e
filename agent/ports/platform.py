"""The platform: what runs the servers, and can bring up another configuration."""

from typing import Final, Protocol

from pydantic import InstanceOf

from agent.core.change.verification import Measurement
from agent.core.plan.action import Action
from agent.core.service.serving import Live
from agent.core.value import Excerpt, Value
from agent.errors import DependencyFailed, InputRejected, SreError, StateConflict
from agent.ports.control import LeaseEnd
from agent.ports.model_server import ModelServer

HINTS: Final[dict[type[SreError], str]] = {
    InputRejected: "make another plan; nothing was changed",
    StateConflict: "look at the service and plan again",
    DependencyFailed: "no action needed: it is tried again",
}
"""What to do about a refusal of which a platform says no more."""


class NotDeployed(InputRejected):
    """The service is configured here, and the platform does not have it: not created yet, or deleted."""


class LeaseOver(StateConflict):
    """The lease under which a call was decided ended before it was sent: nothing was changed by it."""


class Order(Value):
    """One change to make, with everything that makes it safe to try again.

    Attributes:
        etag: As read once before the intent was stored; the platform refuses when the service changed since.
        revision: The name of the revision to make; a second try with it finds the first.
        effect_key: Stamped on the revision.
        staged: New revision without traffic first.
        lease_end: The end of the lease under which it is carried out (ADR 0025); None where it is only checked.

    A lifecycle is an order with one :class:`agent.core.plan.action.Lifecycle` alone; scaling to zero is a stop too. An
    adapter that cannot do one refuses it with InputRejected in ``validate`` and ``apply``, and its hint says how a
    person does it. A creation brings ``absent(...)``'s etag, and a service that stands without this effect's stamp is a
    conflict. A stop and a start keep the template. A deletion is done when ``describe`` raises NotDeployed.
    """

    service: str
    incident: str
    effect_key: str
    revision: str
    etag: str
    actions: tuple[Action, ...]
    staged: bool = False
    lease_end: InstanceOf[LeaseEnd] | None = None


class Restore(Value):
    """A prior template and traffic to put back byte by byte.

    An empty template stands for a service that was not there: what the change created is removed again.

    Attributes:
        actions: What the change did that is undone: what it left alone is left alone.
        lease_end: The end of the lease under which it is carried out.
    """

    service: str
    incident: str
    effect_key: str
    revision: str
    etag: str
    template: str
    traffic: str
    actions: tuple[Action, ...] = ()
    lease_end: InstanceOf[LeaseEnd]


class Operation(Value):
    """Work under way on the platform.

    Attributes:
        done: Whether it has ended.
        ok: Whether it ended well; None while it runs or where nobody knows (``says`` tells why).
        remains: What only another call of the same order does; until then it is not done.
        revision: The platform's own name of the revision that it made, where signals carry that and not the order's.
    """

    name: str
    done: bool
    ok: bool | None
    says: Excerpt = ""
    remains: str = ""
    revision: str | None = None


def seconds_to_send(lease_end: LeaseEnd | None, service: str) -> float:
    """Return how long a call that changes a service may take; asked right before each of them, with nothing between.

    Args:
        lease_end: Of the order that is carried out.
        service: Which service.

    Raises:
        LeaseOver: It must not be sent any more.
        DependencyFailed: Nobody knows the time; it must not be sent.
    """
    assert lease_end is not None, "an order without the end of its lease can be checked, not carried out"
    left_s = lease_end.left_s()
    if left_s <= 0:
        raise LeaseOver(
            f"nothing was done to {service!r}",
            why=f"the lease {lease_end.lease.name!r} was over before the call; another worker may have gone on",
            hint="no action needed: the next worker checks the live state",
        )
    return left_s


class Platform(Protocol):
    """Describes and changes services of one platform.

    Every method raises DependencyFailed when the platform does not answer, PolicyRefused when it denies
    (permission, quota), InputRejected for a service it does not have. ``apply``, ``restore`` and ``shift`` look at the
    end of the lease right before each call that changes anything, and no such call waits for an answer past it: a
    worker that stood still for longer raises LeaseOver and has changed nothing since.
    """

    def describe(self, service: str) -> Live:
        """Return the service as it is now.

        Raises:
            NotDeployed: It is configured and not there.
        """
        ...

    def validate(self, order: Order) -> None:
        """Let the platform check a change without making it.

        Raises:
            InputRejected: The platform would refuse it, with its words.
        """
        ...

    def apply(self, order: Order) -> Operation:
        """Start the change and return at once.

        Calling again with the same order changes nothing twice: a revision with the effect's stamp is ours.

        Raises:
            StateConflict: The service changed since ``etag`` was read, and not by this effect.
            LeaseOver: The lease ended before it could be sent.
        """
        ...

    def find(self, service: str, effect_key: str) -> Operation | None:
        """Return the operation of an effect read back by its stamp, or None where there is no trace of it.

        Raises:
            NotDeployed: The service is not there, so nothing can be read back; of a deletion it may tell all the same.
        """
        ...

    def operation(self, name: str) -> Operation:
        """Return how far an operation has come."""
        ...

    def restore(self, order: Restore) -> Operation:
        """Start putting a prior template and traffic back; the same promises as ``apply``.

        Where the operation says that something remains, the same call does it.
        """
        ...

    def shift(self, service: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:
        """Give all traffic to a revision that was brought up without; the same promises as ``apply``."""
        ...

    def restored(self, service: str, *, template: str, traffic: str) -> bool:
        """Whether template and traffic equal the prior ones, but for revision name and stamp."""
        ...

    def measure(self, service: str, revision: str) -> tuple[Measurement, ...]:
        """Measure a revision: ready, one real completion, token counters, speed."""
        ...

    def server(self, service: str) -> ModelServer:
        """Return a server of the service that is known to run; nothing is sent to it, so nothing is woken.

        Raises:
            NotRunning: None is known to run: it is not ready, it scales to zero, or it is simulated.
        """
        ...
