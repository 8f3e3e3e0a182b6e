"""Long tools say how far they are, and end when the client has left."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import anyio.from_thread

T = TypeVar("T")


class Progress:
    """How far one call is. Tools run on a thread of their own beside the server's loop.

    Args:
        context: Of the call, as the SDK gives it.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def check(self) -> None:
        """Go on, or end the call where the client cancelled it or hung up; a request that is under way ends with it."""
        anyio.from_thread.check_cancelled()

    def report(self, done: int, total: int | None, what: str) -> None:
        """Tell the client, where it asked for it; ends the call as :meth:`check` does."""
        self.check()
        anyio.from_thread.run(self._context.report_progress, float(done), total, what)

    def over(self, items: Iterable[T], total: int, what: str) -> Iterator[T]:
        """Yield the items, and tell before each how many are done."""
        for done, item in enumerate(items):
            self.report(done, total, f"{what} {done + 1} of {total}")
            yield item
