"""A quantity that is known between two ends, with a best estimate inside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, hypot

GIB = 2**30
MIB = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Low end, best estimate and high end of one quantity, all in the same unit (bytes unless the name says otherwise).

    Raises:
        AssertionError: If the ends are out of order; that is a bug of the caller.
    """

    low: int
    best: int
    high: int

    def __post_init__(self) -> None:
        assert self.low <= self.best <= self.high, f"bounds out of order: {self}"

    @classmethod
    def exactly(cls, value: int) -> Bounds:
        """A quantity that is known."""
        return cls(low=value, best=value, high=value)

    @classmethod
    def around(cls, value: int, *, below: float, above: float) -> Bounds:
        """A quantity known to a share: ``below`` and ``above`` are fractions of the value."""
        return cls(low=int(value * (1 - below)), best=value, high=int(value * (1 + above)))

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(low=self.low + other.low, best=self.best + other.best, high=self.high + other.high)

    def __sub__(self, other: Bounds) -> Bounds:
        return Bounds(low=self.low - other.high, best=self.best - other.best, high=self.high - other.low)

    def at_least(self, floor: int) -> Bounds:
        """The same quantity, no part of it under ``floor``."""
        return Bounds(low=max(floor, self.low), best=max(floor, self.best), high=max(floor, self.high))

    def less(self, other: Bounds) -> Bounds:
        """What is left where the errors of both have nothing to do with each other; see ``independent_sum``."""
        best = self.best - other.best
        below = hypot(self.best - self.low, other.high - other.best)
        above = hypot(self.high - self.best, other.best - other.low)
        return Bounds(low=best - ceil(below), best=best, high=best + ceil(above))

    def negated(self) -> Bounds:
        """The same quantity taken away."""
        return Bounds(low=-self.high, best=-self.best, high=-self.low)


NOTHING = Bounds.exactly(0)


def independent_sum(terms: Iterable[Bounds]) -> Bounds:
    """Sum of quantities whose errors have nothing to do with each other: the ends add in quadrature.

    Four terms that are each at their worst at once are rarer than any one of them; adding the ends would make every
    tight configuration "unknown". With one uncertain term this is the plain sum.
    """
    held = tuple(terms)
    best = sum([term.best for term in held])
    below = hypot(*[term.best - term.low for term in held])
    above = hypot(*[term.high - term.best for term in held])
    return Bounds(low=best - ceil(below), best=best, high=best + ceil(above))
