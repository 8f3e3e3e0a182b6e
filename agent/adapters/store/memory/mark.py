"""The mark of the installation in memory, the same in both stores."""

import threading

from agent.core.database_pair import InstallationMark, advanced


class MemoryMark:
    """Keeps the promises of :class:`agent.ports.store.MarkStore` until the process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mark: InstallationMark | None = None

    def mark(self) -> InstallationMark | None:
        """Return the mark; see the port."""
        with self._lock:
            return self._mark

    def first_mark(self, mark: InstallationMark) -> InstallationMark:
        """Set the mark where there is none; see the port."""
        with self._lock:
            self._mark = self._mark or mark
            return self._mark

    def set_mark(self, mark: InstallationMark) -> None:
        """Set the mark; see the port."""
        with self._lock:
            self._mark = mark

    def reach(self, number: int) -> None:
        """Let the mark grow; see the port."""
        with self._lock:
            self._mark = advanced(self._mark, number) if self._mark is not None else None
