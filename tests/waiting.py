"""Waiting for what another thread or process does: looked at again and again, and given up after a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(look: Callable[[], Found], why: Callable[[], str] = lambda: "", *, limit_s: float = 30.0) -> Found:
    """Return the first true answer of ``look``; ``why`` is asked where none came in ``limit_s`` seconds."""
    end = time.monotonic() + limit_s
    while not (found := look()):
        assert time.monotonic() < end, why() or "it did not come"
        time.sleep(0.01)
    return found
