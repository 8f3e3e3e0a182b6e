"""The cluster around us: objects that are followed without asking again and again, and the lock among replicas."""

from collections.abc import Callable, Mapping
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
