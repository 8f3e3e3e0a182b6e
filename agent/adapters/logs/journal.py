"""The log of a systemd unit that is reached from outside: of the start that failed, from its first line."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.core.value import Value
from agent.ports.logs import InstanceLog, LogLine

SETTLED: Final = timedelta(minutes=10)
"""What is told of a server that has run for so long is about this start."""

KERNEL_LATE_US: Final = 5_000_000


class Entry(Value):
    """One entry of a journal.

    Attributes:
        at_us: Microseconds since the epoch.
        start: The start (invocation) that printed it; empty for what the kernel said.
        text: The line; untrusted.
    """

    at_us: int
    start: str
    text: str

    @property
    def at(self) -> datetime:
        """When it was printed."""
        return datetime.fromtimestamp(self.at_us / 1_000_000, UTC)


class Journal(Value):
    """The last entries of a unit.

    Attributes:
        instance: The machine's id.
        entries: Oldest first.
        reached: Whether the journal's own beginning was reached.
        ended: Whether the unit does not run now.
    """

    instance: str
    entries: tuple[Entry, ...]
    reached: bool
    ended: bool


class JournalLogs:
    """Reads a unit's log.

    Args:
        read: Returns the newest entries of a service's unit until a time, None where it has none.
    """

    def __init__(self, read: Callable[[str, datetime, int], Journal | None]) -> None:
        self._read = read

    def instance_log(
        self, service: str, *, revision: str | None, instance: str | None, until: datetime, limit: int = 2000
    ) -> InstanceLog | None:
        """Return the log of the unit, of the start that failed; see the port.

        That is the one that ended last, unless another one had run for ``SETTLED`` when the last thing was told.
        """
        journal = self._read(service, until, limit)
        if journal is None or not journal.entries:
            return None
        if instance is not None and instance.startswith("i-") and instance != journal.instance:
            return None  # of another machine, which is gone
        start = _failed_start(journal, until)
        own = [e for e in journal.entries if e.start == start]
        first, last = own[0].at_us, own[-1].at_us
        kernel = [e for e in journal.entries if start and not e.start and first <= e.at_us <= last + KERNEL_LATE_US]
        lines = sorted([*own, *kernel], key=lambda entry: entry.at_us)
        earlier = any(e.start not in {"", start} and e.at_us < first for e in journal.entries)
        return InstanceLog(
            service=service,
            revision=revision,
            instance=journal.instance,
            lines=tuple(LogLine(at=e.at, text=e.text) for e in lines),
            complete=journal.reached or earlier,
        )


def _failed_start(journal: Journal, until: datetime) -> str:
    starts = list(dict.fromkeys(e.start for e in journal.entries if e.start))
    if not starts:
        return ""
    newest = next(e for e in journal.entries if e.start == starts[-1])
    young = until - newest.at < SETTLED
    return starts[-2] if len(starts) > 1 and young and not journal.ended else starts[-1]
