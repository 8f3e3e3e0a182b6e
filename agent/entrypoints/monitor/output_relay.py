"""Passes on what a watched server prints: unchanged, in its order, and never at the cost of the server."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from agent.errors import SreError
from agent.ports.host import Start, State

LOOK_S = 0.05
CHUNK_BYTES = 65_536
BEHIND_BYTES = 32 * 2**20  # the log keeps its last 64 MiB; who is so far behind leaves the middle out
KEPT_BYTES = 8 * 2**20
DRAIN_S = 2.0


class OutputRelay:
    """Reads the log file of each start and passes it on; the server itself writes to a file and waits for nobody.

    Both streams of a server share its log, so what is passed on has the order in which it was written.

    Args:
        state: The present record of the server; None while there is none.
        path_of: The log of a start.
        write: Takes the bytes; may wait. An OSError ends the passing on, not the watching.
        left_out: Told how many bytes were left out because nobody took them in time, at most, and which log has them.
        ready: Whether bytes are taken now; while they are not, they wait in the log.
    """

    def __init__(
        self,
        state: Callable[[], State | None],
        path_of: Callable[[Start], Path],
        write: Callable[[bytes], None],
        *,
        left_out: Callable[[int, Path], None],
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._state = state
        self._path_of = path_of
        self._write = write
        self._left_out = left_out
        self._ready = ready
        self._offsets: dict[str, int] = {}
        self._finishing: float | None = None
        self._reader_left = False
        self._thread = threading.Thread(target=self._run, name="output_relay", daemon=True)

    def skip(self, state: State, *, newest_too: bool) -> None:
        """Leave out what was printed before this watch: earlier starts, and the newest one where it was taken over."""
        for start in state.starts if newest_too else state.starts[:-1]:
            self._offsets[start.mark] = _size(self._path_of(start))

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def finish(self, limit_s: float = DRAIN_S) -> None:
        """Pass on what is there, for so long at most, and end; nobody who does not read can keep us.

        What was not taken by then is told: a reader who is slow would else take the last piece for the end.
        """
        self._finishing = time.monotonic() + limit_s
        if self._thread.is_alive():
            self._thread.join(limit_s + 1)
        with contextlib.suppress(OSError, ValueError, SreError):
            for count, path in self._not_taken():
                self._left_out(count, path)

    def _not_taken(self) -> list[tuple[int, Path]]:
        """Return how many bytes of each log nobody took; none where the reader has left."""
        state = self._state()
        if state is None or self._reader_left:
            return []
        logs = [(self._offsets.get(start.mark, 0), self._path_of(start)) for start in state.starts]
        return [(_size(path) - at, path) for at, path in logs if _size(path) > at]

    def _run(self) -> None:
        while True:
            last = self._finishing is not None
            try:
                moved = self._look()
            except SreError:
                moved = False
            except (OSError, ValueError):
                self._reader_left = True  # nobody holds the other end any more
                return
            if last and (not moved or time.monotonic() >= (self._finishing or 0)):
                return
            if not moved:
                time.sleep(LOOK_S)

    def _look(self) -> bool:
        """Pass on what is new; return whether there was anything."""
        state = self._state()
        if state is None or not self._ready():
            return False
        moved = False
        for start in state.starts:
            moved = self._pass_on(start) or moved
        return moved

    def _pass_on(self, start: Start) -> bool:
        """Pass on a stretch of one start's log; the start after it waits until this one is through."""
        path = self._path_of(start)
        at = self._offsets.setdefault(start.mark, 0)
        size = _size(path)
        if size <= at:
            return False
        with path.open("rb") as log:
            if size - at > BEHIND_BYTES:
                fresh = _next_line(log, size - KEPT_BYTES)
                self._left_out(fresh - at, path)
                at = fresh
            log.seek(at)
            while (chunk := log.read(CHUNK_BYTES)) and self._ready():
                self._write(chunk)
                at += len(chunk)
                self._offsets[start.mark] = at
                if _size(path) - at > BEHIND_BYTES:
                    break
        return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _next_line(log: BinaryIO, at: int) -> int:
    """Return where a line begins at or after a place; the place itself where none begins soon."""
    log.seek(at)
    cut = log.read(CHUNK_BYTES).find(b"\n")
    return at + cut + 1 if cut >= 0 else at
