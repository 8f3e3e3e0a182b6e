"""A finding of the doctor: one line, good or what to do."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from agent.core.value import Value
from agent.errors import SreError


class State(StrEnum):
    """How it stands with one thing; not looked at is not good."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"  # it could not be looked at; why and how stands beside it
    OFF = "off"  # not set up, and nothing needs it


class Finding(Value):
    """One thing that was looked at.

    Attributes:
        check: What was looked at, such as ``slack`` or ``service:gemma``.
        hint: What to do; empty where it is good.
        given: It was given by the operator: a setting, or a file that one names. All else is a dependency.
    """

    check: str
    state: State
    says: str
    hint: str = ""
    given: bool = False

    @property
    def line(self) -> str:
        """The finding for people."""
        return f"{self.state.value:<8} {self.check:<28} {self.says}" + (f" -> {self.hint}" if self.hint else "")


def good(check: str, says: str) -> Finding:
    """Say that it is as it should be."""
    return Finding(check=check, state=State.GOOD, says=says)


def bad(check: str, says: str, hint: str) -> Finding:
    """Say what is wrong, and what to do."""
    return Finding(check=check, state=State.BAD, says=says, hint=hint)


def unknown(check: str, says: str, hint: str) -> Finding:
    """Say that nobody could look, and how one could."""
    return Finding(check=check, state=State.UNKNOWN, says=says, hint=hint)


def off(check: str, says: str) -> Finding:
    """Say that it is not set up."""
    return Finding(check=check, state=State.OFF, says=says)


def mark_from_operator(found: Iterable[Finding]) -> Iterator[Finding]:
    """Mark what the operator gave."""
    return (finding.with_(given=True) for finding in found)


def run_check(check: str, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Run one check; a dependency that fails is a finding, never the end of the round."""
    try:
        yield from look()
    except SreError as error:
        yield bad(check, error.cause, error.hint)
