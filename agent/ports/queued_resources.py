"""TPU queued resources: what is asked for, what runs, and what only holds quota."""

from typing import Final, Protocol

from agent.core.value import Value

HOLD_QUOTA: Final = frozenset({"SUSPENDED", "SUSPENDING", "FAILED"})
"""States that count against the quota and serve nothing, until somebody deletes the resource."""


class QueuedResource(Value):
    """One queued resource.

    Attributes:
        state: As the platform names it, such as WAITING_FOR_RESOURCES.
        accelerator_type: Such as v6e-4.
        nodes: Names of its nodes.
    """

    name: str
    zone: str
    state: str
    accelerator_type: str
    nodes: tuple[str, ...] = ()
    spot: bool = False
    made_at: str = ""

    @property
    def holds_quota(self) -> bool:
        """Whether it counts against the quota and serves nothing."""
        return self.state in HOLD_QUOTA


class QueuedResources(Protocol):
    """Reads queued resources; nothing here creates or deletes one."""

    def zones(self, project: str) -> tuple[str, ...]:
        """Return the zones that have TPUs.

        Raises:
            SreError: They cannot be read.
        """
        ...

    def read(self, project: str, zone: str) -> tuple[QueuedResource, ...]:
        """Return the queued resources of one zone.

        Raises:
            SreError: They cannot be read.
        """
        ...
