"""The name of an operation of ours: the platform's own name, and what to look at where that is gone."""

from typing import Final

from agent.adapters.platform.refusals import unknown_operation
from agent.core.value import Value
from agent.ports.platform import Operation

_AIMS: Final = frozenset({"revisions", "traffic", "scaling", "deletion"})


class Work(Value):
    """What such a name holds.

    Attributes:
        service: As the platform calls it.
        aim: ``revisions/NAME`` for a new revision, ``traffic/NAME`` for a shift, ``scaling/NAME`` for a stop and
            ``deletion/NAME`` for a deletion, with the name that the effect's revision would have.
        native: The platform's own operation; empty where its name was lost with the answer.
    """

    service: str
    aim: str
    native: str = ""

    @property
    def name(self) -> str:
        """The name to store; the platform's own name stands in front, so that people can look it up."""
        return f"{self.native}#{self.service}/{self.aim}"

    @property
    def revision(self) -> str:
        """Our name of the revision."""
        return self.aim.rsplit("/", 1)[-1]

    def operation(self, ok: bool | None, says: str, revision: str | None = None) -> Operation:  # noqa: FBT001 - three-valued
        """Return how far it has come: ended where that is known, with the platform's name of the revision."""
        return Operation(name=self.name, done=ok is not None, ok=ok, says=says, revision=revision)

    def not_made(self) -> Operation:
        """Return the end of a revision that was never made, where nothing tells why."""
        says = f"{self.revision} is not there, and nothing tells why"
        return self.operation(None, says).with_(done=True)


def work_of(name: str, *, plain: bool = False) -> Work:
    """Read an operation's name.

    Args:
        name: As it was stored.
        plain: Whether the platform calls a service by one word, and not by a path.

    Raises:
        InputRejected: It is none of ours.
    """
    native, mark, rest = name.partition("#")
    parts = rest.rsplit("/", 2)
    if not mark or len(parts) != 3 or parts[1] not in _AIMS or (plain and "/" in parts[0]):
        raise unknown_operation(name, "it is no name of ours")
    return Work(service=parts[0], aim=f"{parts[1]}/{parts[2]}", native=native)
