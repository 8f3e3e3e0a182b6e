"""The log of a server here: both its ends for a diagnosis, and a follower that keeps file and memory small."""

import ctypes
import errno
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from agent.errors import DependencyFailed
from agent.ports.logs import InstanceLog, LogLine

HEAD_BYTES = 4 * 2**20  # of a file that is always kept: it tells the phase
TAIL_BYTES = 64 * 2**20  # of a file that is always kept: the minutes before a crash
CHUNK_BYTES = 2**20
LINE_BYTES = 65_536  # a longer line is cut: one observation holds no more
READ_BYTES = 2 * 2**20  # of either end, for a diagnosis

_EMPTY_LINES = re.compile(rb"\n{3,}")

FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2  # linux/falloc.h


class StartLog(NamedTuple):
    """Where a start's output stands."""

    revision: str
    instance: str
    began_at: datetime
    path: Path
    first_byte: int = 0


class HostLogs:
    """Serves the log of a start, the newest where none is named.

    Args:
        starts: The starts of a service, the newest last.
    """

    def __init__(self, starts: Callable[[str], tuple[StartLog, ...]]) -> None:
        self._starts = starts

    def instance_log(
        self,
        service: str,
        *,
        revision: str | None,
        instance: str | None,
        until: datetime,  # noqa: ARG002 - what was printed later is evidence too
        limit: int = 2000,
    ) -> InstanceLog | None:
        """Return the log of a start; of more than ``limit`` lines the first and the last half.

        All lines count as written at the start's begin, in their order: the server's own stamps have neither year nor
        zone. What it printed after ``until`` is in it too: more evidence never makes a diagnosis worse.
        """
        fits = [
            s
            for s in self._starts(service)
            if (revision is None or s.revision == revision) and (instance is None or s.instance == instance)
        ]
        if not fits:
            return None
        start = fits[-1]
        begin, end, total = _ends(start.path, start.first_byte, limit)
        lines = (*begin, *end)
        step = timedelta(microseconds=1)
        return InstanceLog(
            service=service,
            revision=start.revision,
            instance=start.instance,
            lines=tuple(LogLine(at=start.began_at + n * step, text=line) for n, line in enumerate(lines)),
            complete=bool(lines),
            cut_after=len(begin) if end else None,
            cut_lines=total - len(lines) if end and total is not None else None,
        )


class Follower:
    """Reads what is added to a log, in whole lines and bounded pieces, and gives the disk its middle back.

    Args:
        path: The file that the server writes to; it may not exist yet.
        offset: Where to go on, bytes; what a predecessor told of stands before it.
        punch: Whether the file is ours to keep small.
    """

    def __init__(self, path: Path, *, offset: int = 0, punch: bool = True) -> None:
        self._path = path
        self._offset = offset
        self._punched = HEAD_BYTES
        self._punch = punch
        self._partial = b""

    @property
    def offset(self) -> int:
        """Everything before this byte was handed out."""
        return self._offset - len(self._partial)

    def pieces(self, *, ended: bool = False) -> Iterator[list[str]]:
        """Yield the new lines in stretches of about ``CHUNK_BYTES``; who stops early goes on there the next time.

        Of empty lines in a row one is kept.

        Args:
            ended: Whether the server has ended: then a last line without an end of line is a line too.
        """
        while chunk := self._read():
            self._offset += len(chunk)
            whole, cut, rest = (self._partial + chunk).rpartition(b"\n")
            if not cut and len(rest) > LINE_BYTES:  # a line without an end must not grow without one
                whole, rest = rest[:LINE_BYTES], b""
            self._partial = rest
            self._give_back()
            if whole:
                yield _lines(_EMPTY_LINES.sub(b"\n\n", whole))
        if ended and self._partial:
            last, self._partial = self._partial, b""
            yield _lines(last)

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size < self._offset:  # somebody cut the file: what stands there now is new
                    self._offset, self._partial = 0, b""
                file.seek(self._offset)
                return file.read(CHUNK_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise DependencyFailed(
                f"the log {str(self._path)!r} was not read", why=str(error), hint="no action needed: it is tried again"
            ) from error

    def _give_back(self) -> None:
        """Free the blocks between head and tail.

        The server holds the file open, so it can neither be renamed nor copied and cut without losing lines in
        between; a hole leaves every byte before and behind it where it is.
        """
        end = self.offset - TAIL_BYTES
        if self._punch and end - self._punched >= CHUNK_BYTES:
            if punch(self._path, self._punched, end - self._punched):
                self._punched = end
            else:
                self._punch = False


def punch(path: Path, start: int, length: int) -> bool:
    """Free a stretch of a file without moving a byte; False where the file system cannot."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        mode = ctypes.c_int(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE)
        done = libc.fallocate(handle, mode, ctypes.c_int64(start), ctypes.c_int64(length))
        return done == 0 or ctypes.get_errno() == errno.EINTR
    except AttributeError:  # no such call on this system
        return False
    finally:
        os.close(handle)


def _ends(path: Path, first: int, limit: int) -> tuple[list[str], list[str], int | None]:
    """Return the first and the last lines behind a byte, ``limit`` of them or less, and how many there are.

    The end is empty where the beginning is everything. Nobody can count lines where the middle was given back.
    """
    half = limit - limit // 2
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(first)
            head = file.read(READ_BYTES)
            if size - first <= READ_BYTES:
                lines = _lines(head)
                return (lines, [], None) if len(lines) <= limit else (lines[:half], lines[half - limit :], len(lines))
            file.seek(max(first + READ_BYTES, size - READ_BYTES))
            tail = file.read(READ_BYTES)
            total = _count(file, first, size)
    except FileNotFoundError:
        return [], [], None
    except OSError as error:
        raise DependencyFailed(
            f"the log {str(path)!r} was not read", why=str(error), hint="no action needed: it is tried again"
        ) from error
    begin = head.rpartition(b"\n")[0].split(b"\n", half)[:half]
    rest = limit - len(begin)
    end = tail.partition(b"\n")[2].rsplit(b"\n", rest)[-rest:]
    return _lines(b"\n".join(begin)), _lines(b"\n".join(end)), total


def _count(file: BinaryIO, first: int, size: int) -> int | None:
    """Count the lines behind a byte, or None where the file has given blocks back."""
    if os.fstat(file.fileno()).st_blocks * 512 < size - first - CHUNK_BYTES:
        return None
    file.seek(first)
    return 1 + sum(block.count(b"\n") for block in iter(partial(file.read, CHUNK_BYTES), b""))


def _lines(whole: bytes) -> list[str]:
    return [line[:LINE_BYTES] for line in whole.decode("utf-8", "replace").split("\n")]
