"""Ports that fail, answer late, or take the process away, at numbered calls under one seed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agent.errors import DependencyFailed
from tests.port_effects import effects


class Fault(StrEnum):
    """What can happen at one call of a port."""

    DIES_BEFORE = "dies before"  # the process is gone, the call was not made
    DIES_AFTER = "dies after"  # the call was made, nobody heard the answer
    FAILS = "fails"  # not made, an error is heard
    LOST = "lost"  # made, but an error is heard
    PAUSES = "pauses"  # the process stands still while others go on, then makes the call


class Died(BaseException):
    """The process ended in the middle of something; nothing in it may catch this."""


@dataclass
class Weather:
    """How often which fault happens at a call; nothing happens where all are 0."""

    dies: float = 0.0
    fails: float = 0.0
    lost: float = 0.0
    pauses: float = 0.0

    def fault(self, chance: float, *, writes: bool) -> Fault | None:
        """Return the fault of one call for a number from 0 to 1."""
        for fault, share in (
            (Fault.DIES_BEFORE, self.dies / 2),
            (Fault.DIES_AFTER, self.dies / 2 if writes else 0.0),
            (Fault.FAILS, self.fails),
            (Fault.LOST, self.lost if writes else 0.0),
            (Fault.PAUSES, self.pauses),
        ):
            if chance < share:
                return fault
            chance -= share
        return None


WRITES = frozenset({*effects(), "notifier.tell", "model.ask"})
"""Calls that leave something behind: a crash after one differs from a crash before it."""

EFFECTS = frozenset({"platform.apply", "platform.shift", "platform.restore"})


@dataclass
class Port:
    """A port through which every call is told to the driver first."""

    inner: Any
    name: str
    around: Callable[[str, Callable[[], Any]], Any] = field(repr=False)

    def __getattr__(self, method: str) -> Any:
        found = getattr(self.inner, method)
        if not callable(found):
            return found
        label, around = f"{self.name}.{method}", self.around
        wrapped = self.__dict__[method] = lambda *args, **more: around(label, lambda: found(*args, **more))
        return wrapped


def broken(label: str) -> DependencyFailed:
    """The error that a caller hears."""
    return DependencyFailed(f"{label} did not answer", why="the simulation wanted it so", hint="try again")
