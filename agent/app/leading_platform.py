"""A platform that changes nothing for a replica that does not lead any more."""

from collections.abc import Callable
from typing import Any, Final, cast

from agent.errors import DependencyFailed
from agent.ports.platform import Platform

READS: Final = frozenset({"describe", "validate", "find", "operation", "restored", "measure", "server"})
"""What changes nothing; whatever else a platform can do is asked of the leader alone."""


class LeadingPlatform:
    """Hands everything on, effects only while we lead.

    Args:
        platform: What is handed on to.
        leads: Whether we lead at this very moment.
    """

    def __init__(self, platform: Platform, leads: Callable[[], bool]) -> None:
        self._platform, self._leads = platform, leads

    def __getattr__(self, name: str) -> Any:
        """Return what the platform has of that name, guarded where it may change something."""
        found = getattr(self._platform, name)
        if name in READS or not callable(found):
            return found

        def led(*args: Any, **kwargs: Any) -> Any:
            if not self._leads():
                raise DependencyFailed(
                    "nothing was changed",
                    why="this replica does not hold the Lease any more, and another one may be at work",
                    hint="no action needed: the replica that holds it goes on",
                )
            return found(*args, **kwargs)

        return led


def leading(
    platform_of: Callable[[str], Platform | None], leads: Callable[[], bool]
) -> Callable[[str], Platform | None]:
    """Return the same platforms, each guarded."""

    def of(service: str) -> Platform | None:
        found = platform_of(service)
        return cast("Platform", LeadingPlatform(found, leads)) if found is not None else None

    return of
