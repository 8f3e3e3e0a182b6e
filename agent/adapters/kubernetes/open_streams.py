"""Responses of an API server that are being read, each in a thread of its own, cut off together at the end."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class OpenStreams:
    """What is being read now.

    Attributes:
        stopping: Set once all of it is to end.
    """

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._reading: set[Any] = set()

    @contextlib.contextmanager
    def reading(self, response: Any) -> Iterator[bool]:
        """Hold a response while it is read; yields False where it is to end: whoever stops may not have seen it."""
        self._reading.add(response)
        try:
            yield not self.stopping.is_set()
        finally:
            self._reading.discard(response)

    def stop(self) -> None:
        """Cut off whatever is being read, and let nothing begin any more."""
        self.stopping.set()
        for response in tuple(self._reading):
            with contextlib.suppress(Exception):  # it may be ending by itself at this very moment
                response.shutdown()
