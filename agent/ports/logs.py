"""The logs: what an instance itself printed since its start, which no sink lets through."""

from collections.abc import Sequence
from typing import Protocol

from pydantic import AwareDatetime

from agent.core.value import Value


class LogLine(Value):
    """One line with its time; untrusted text.

    Attributes:
        number: Its place in the log itself, from 1; 0 where nobody knows it; None where it is that of its order.
    """

    at: AwareDatetime
    text: str
    number: int | None = None


class InstanceLog(Value):
    """An instance's log from its start.

    Attributes:
        complete: Whether the start was reached; otherwise the phase may be unknown.
        cut_after: How many of ``lines`` stand before the part that was left out; None where nothing was.
        cut_lines: How many lines were left out there; None where nobody counted them.
    """

    service: str
    revision: str | None
    instance: str | None
    lines: tuple[LogLine, ...]
    complete: bool
    cut_after: int | None = None
    cut_lines: int | None = None

    def with_ends(self, begin: Sequence[LogLine], end: Sequence[LogLine] | None = None, *, limit: int) -> "InstanceLog":
        """Return the log with all lines, or with the first and the last half of ``limit`` where there are more.

        Args:
            begin: From the first line on.
            end: The last lines, where not all between them were read; None where all were.
            limit: How many lines may stay.
        """
        if not end and len(begin) <= limit:
            return self.with_(lines=tuple(begin))
        tail = end or begin
        first, last = begin[: limit - limit // 2], tail[max(0, len(tail) - limit // 2) :]
        left_out = None if end is not None else len(begin) - limit
        return self.with_(lines=(*first, *last), cut_after=len(first), cut_lines=left_out)


class Logs(Protocol):
    """Reads logs within a budget of calls."""

    def instance_log(
        self, service: str, *, revision: str | None, instance: str | None, until: AwareDatetime, limit: int = 2000
    ) -> InstanceLog | None:
        """Return the log of the instance, or None where there is none to read.

        Lines from after ``until`` are left out where each has a time of its own. Of more than ``limit`` lines the first
        and the last half are given.

        Raises:
            DependencyFailed: It could not be read; the diagnosis stays provisional.
        """
        ...
