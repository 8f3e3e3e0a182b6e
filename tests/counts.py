"""How many times a test tries a thing: a sample while somebody works, the promised count under CI=true, more to soak."""

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

SOAK = bool(os.environ.get("SOAK"))
CI = os.environ.get("CI") == "true"


def tries(sample: int, *, ci: int, soak: int) -> int:
    """Return the count for this run: ``SOAK=1`` before ``CI=true`` before neither."""
    return soak if SOAK else ci if CI else sample


def some(things: Iterable[T], *, one_in: int) -> list[T]:
    """Return all of them under ``CI=true`` and ``SOAK=1``, and otherwise every so many."""
    return list(things)[:: 1 if CI or SOAK else one_in]


def spread(number: int, tried: int, among: int) -> int:
    """Return which of ``among`` things is the one with this number of ``tried``: spread evenly, or round and round."""
    return number * among // tried if tried < among else number % among
