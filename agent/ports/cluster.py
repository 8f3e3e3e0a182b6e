"""The cluster around us: objects that are followed without asking again and again, and the lock among replicas."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from threading import Event
from typing import Any, NamedTuple, Protocol


class Seen(StrEnum):
    """How an object came to be seen."""

    LISTED = "listed"  # it was there when the list was read: it may have changed long ago
    CHANGED = "changed"  # it was made or changed just now
    GONE = "gone"  # it is not there any more


class Change(NamedTuple):
    """One state of one object."""

    seen: Seen
    object: Mapping[str, Any]


class Follower(Protocol):
    """Follows collections of objects, each in a thread of its caller."""

    def follow(self, path: str, tell: Callable[[Change], None], *, fields: str = "") -> None:
        """Tell every state of every object until ``stop``, at least once each, in the server's order.

        A state that was told is not told again unless ``tell`` raised. Errors of the server end nothing: it is asked
        again, later and later, and the log says what stands in the way.

        Args:
            path: The collection, such as ``/api/v1/namespaces/NS/pods``.
            tell: Takes a change; what it raises has the change told again.
            fields: A field selector, such as ``metadata.name=NAME``; empty follows all.
        """
        ...

    def stop(self) -> None:
        """End every ``follow``, also one that waits for the server."""
        ...


class ContainerRef(NamedTuple):
    """One container of a pod."""

    namespace: str
    pod: str
    container: str


class PrintedLine(NamedTuple):
    """One line of a container's log.

    Attributes:
        stamp: When it was printed, as the node wrote it: up to nanoseconds, which ``at`` cannot hold.
        at: The same moment, UTC.
        text: The line; untrusted.
    """

    stamp: str
    at: datetime
    text: str


class ContainerLogs(Protocol):
    """Follows what containers print, each in a thread of its caller."""

    def follow(
        self,
        container: ContainerRef,
        tell: Callable[[Sequence[PrintedLine]], None],
        *,
        since: datetime,
        running: Event,
        over: Event,
    ) -> None:
        """Tell every line that the container prints, in the order of its log, until ``over`` or ``stop``.

        Where the connection breaks or the container starts again, the log is read on from the last line that ``tell``
        took, without loss and without repetition. What a start printed that ended before anybody asked is left to
        ``Logs``. Errors of the server end nothing.

        Args:
            container: What is followed.
            tell: Takes lines that were printed one after another; what it raises has them told again.
            since: Lines of before are left out, to the second.
            running: Set while the container runs; nothing is asked of the server while it does not.
            over: Set once the pod is gone, before ``running`` is set for the last time.
        """
        ...

    def stop(self) -> None:
        """End every ``follow``; one that waits for the first line of a log tells nothing more, and ends later."""
        ...


class Leadership(Protocol):
    """One of several replicas works; the others wait."""

    def hold(self, stopping: Event) -> bool:
        """Wait until we lead; False where ``stopping`` came first."""
        ...

    def when_lost(self, act: Callable[[], None]) -> None:
        """Have ``act`` called once we do not lead any more, or cannot know."""
        ...

    def leads(self) -> bool:
        """Whether we lead at this very moment; asked before every effect."""
        ...

    def release(self) -> None:
        """Let another one lead at once."""
        ...
