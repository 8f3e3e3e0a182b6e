"""Streams of bytes as files and pipes hold them: unpacked, without byte-order marks, UTF-8, line by line."""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from typing import IO, Protocol

from agent.errors import InputRejected

CHUNK = 65_536
MOST_HOLES = 4  # runs of zeros in the first 64 KiB of a log
LEAST_HOLE = 16  # zeros in one of them
_ZEROS = re.compile(rb"\0+")

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def plain_bytes(stream: IO[bytes]) -> io.BufferedReader:
    """Return a stream as UTF-8 bytes, unpacked if it is gzip, without its byte-order mark.

    ``tell()`` counts the plain bytes that were read. Memory is bounded however well the stream was packed.

    Raises:
        InputRejected: While reading: it is broken gzip.
    """
    raw = _buffered(stream)
    if raw.peek(2)[:2] == b"\x1f\x8b":
        raw = _buffered(gzip.GzipFile(fileobj=raw))
    start = head_of(raw, 3)
    if start.startswith(codecs.BOM_UTF8):
        raw.read(3)
        return _buffered(raw)
    if encoding := _UTF16.get(start[:2]):
        raw.read(2)
        return _buffered(_Recoded(raw, encoding))
    return raw


def head_of(stream: IO[bytes], size: int = CHUNK) -> bytes:
    """Return the first bytes of a buffered stream without taking them."""
    assert isinstance(stream, io.BufferedReader)
    return stream.peek(size)[:size]


def skip_zeros(stream: IO[bytes]) -> bool:
    """Take whole heads of zeros away: a log that is emptied under its writer begins with as many as it had."""
    skipped = False
    while (head := head_of(stream)) and not head.strip(b"\0"):
        stream.read(len(head))
        skipped = True
    return skipped


def is_binary(head: bytes, *, skipped: bool) -> bool:
    """Whether a stream holds zeros between its words, and not only in place of a stretch of a log.

    Args:
        head: Its first 64 KiB, after whole heads of zeros.
        skipped: Whether there were such; then its first zeros belong to them, as its last may belong to what follows.
    """
    if not head:
        return skipped
    holes = list(_ZEROS.finditer(head))
    cut = {0} if skipped else set()
    ends = {len(head)} if len(head) >= CHUNK else set()
    short = any(len(h[0]) < LEAST_HOLE and h.start() not in cut and h.end() not in ends for h in holes)
    return len(holes) > MOST_HOLES or short


def lines_of(stream: IO[bytes], limit: int, *, cut: bool = False) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines with their numbers, from 1, each with its line end (CRLF becomes LF).

    Args:
        stream: Bytes.
        limit: The most bytes of one line.
        cut: Yield a longer line in pieces under one number; otherwise it is skipped and yielded as None.
    """
    number = 0
    while piece := stream.readline(limit):
        number += 1
        if len(piece) < limit or piece.endswith(b"\n"):
            yield number, _unix(piece)
            continue
        yield number, piece if cut else None
        while (piece := stream.readline(limit)) and not piece.endswith(b"\n"):
            if cut:
                yield number, piece
        if cut and piece:
            yield number, _unix(piece)


def _buffered(stream: "_Readable") -> io.BufferedReader:
    return io.BufferedReader(_Source(stream), CHUNK)


def _unix(line: bytes) -> bytes:
    return line[:-2] + b"\n" if line.endswith(b"\r\n") else line


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Source(io.RawIOBase):
    """A raw stream over anything that reads bytes; counts them, and names what is wrong with a packed one."""

    def __init__(self, stream: _Readable) -> None:
        super().__init__()
        self._stream, self._read = stream, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._read

    def seek(self, offset: int, whence: int = 0) -> int:
        """Tell the position, which is all that a buffered reader asks for."""
        if offset == 0 and whence == io.SEEK_CUR:
            return self._read
        raise io.UnsupportedOperation

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            found = self._stream.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputRejected(
                "the packed source was not read to its end",
                why=f"its gzip data are broken: {error}",
                hint="compress it again",
            ) from error
        buffer[: len(found)] = found
        self._read += len(found)
        return len(found)


class _Recoded:
    """UTF-16 read as UTF-8; what is no character becomes the replacement character."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder(encoding)("replace").decode
        self._rest = b""

    def read(self, size: int) -> bytes:
        while not self._rest:
            chunk = self._stream.read(CHUNK)
            self._rest = self._decode(chunk, final=not chunk).encode("utf-8", "replace")
            if not chunk:
                break
        found, self._rest = self._rest[:size], self._rest[size:]
        return found
