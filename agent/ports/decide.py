"""The deciding function, for whoever speaks to it from outside: the console and the command line of the cloud."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from agent.errors import DependencyFailed

LIST_LIMIT: Final = 200  # incidents in one answer; more are asked for page by page


class NoResponse(DependencyFailed):
    """The request went out and no answer came: nobody knows what became of it."""


class Decide(Protocol):
    """Asks the deciding function once, never again."""

    def get(self, path: str, *, headers: Mapping[str, str], query: Mapping[str, str] | None = None) -> Any:
        """Return what stands at a place.

        Raises:
            SreError: What the function said against it, as it said it; DependencyFailed where it said nothing.
        """
        ...

    def post(self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> Any:
        """Send something once and return the answer.

        Raises:
            SreError: What the function said against it, as it said it.
            NoResponse: No answer came: nobody knows whether it was taken, and it is not sent again.
        """
        ...
