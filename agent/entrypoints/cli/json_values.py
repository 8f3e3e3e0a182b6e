"""JSON objects out of an array, or one after another, from a stream that is too long to be held."""

import re
from collections.abc import Iterator
from typing import IO

from agent.entrypoints.cli.byte_stream import CHUNK

_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"(?:[^"\\]++|\\.)*+"[^"{}\[\]]*+)*+([{}\[\]])', re.DOTALL)
_NO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"(?:[^"\\]++|\\.)*+"[^"{}\[\]]*+)*', re.DOTALL)
"""A possessive group last would go beyond its last whole turn: Python before 3.11.5, https://github.com/python/cpython/issues/106052."""
_BETWEEN = b" \t\r\n,"


def values_of(stream: IO[bytes], limit: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield each object or array of the outermost array, or of the stream, with the line it begins on.

    Brackets are matched, nothing else is checked: that is for whoever parses what comes out. Words between
    values come out as they stand, so that they are refused there.

    Args:
        stream: UTF-8 bytes.
        limit: The most bytes of one value; a longer one comes out as None.

    Memory is bounded by ``limit``, time is linear but for a rescan per chunk of a string that spans chunks.
    """
    cutter = _Cutter(limit)
    while chunk := stream.read(CHUNK):
        yield from cutter.feed(chunk)
    yield from cutter.end()


class _Cutter:
    """Holds what has been read of the present value."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = b""  # begins with the present value, or with what stands between two
        self._scanned = 0
        self._depth = 0
        self._base: int | None = None  # the depth at which values begin: 1 inside an array, else 0
        self._line = 1
        self._dropping = False

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        self._held += chunk
        while found := _TO_BRACKET.match(self._held, self._scanned):
            self._scanned = found.end()
            yield from self._bracket(found[1], found.start(1))
        if len(self._held) > self._limit:
            yield from self._drop()

    def end(self) -> Iterator[tuple[int, bytes | None]]:
        rest = self._held.strip(_BETWEEN)
        if rest and not self._dropping:
            yield self._line + self._lines_before(self._held), rest

    def _bracket(self, bracket: bytes, at: int) -> Iterator[tuple[int, bytes | None]]:
        if self._base is None:
            self._base = 1 if bracket == b"[" else 0
            if self._base:
                self._depth = 1
                self._take(at + 1)
                return
        if bracket in b"[{":
            if self._depth == self._base:
                yield from self._between(at)
                self._dropping = False
            self._depth += 1
            return
        self._depth -= 1
        if self._depth == self._base:
            yield from self._value()
        elif self._depth < self._base:  # the array ends; what follows is read as values of their own
            yield from self._between(self._scanned - 1)
            if not self._base:
                yield self._line, bracket
            self._take(1)
            self._depth = self._base = 0

    def _value(self) -> Iterator[tuple[int, bytes | None]]:
        raw, line = self._held[: self._scanned], self._line
        if not self._dropping:
            yield (line, raw) if len(raw) <= self._limit else (line, None)
        self._dropping = False
        self._take(self._scanned)

    def _between(self, at: int) -> Iterator[tuple[int, bytes | None]]:
        words = self._held[:at].strip(_BETWEEN)
        if words and not self._dropping:
            yield self._line + self._lines_before(self._held), words[: self._limit]
        self._take(at)

    def _take(self, upto: int) -> None:
        self._line += self._held.count(b"\n", 0, upto)
        self._held, self._scanned = self._held[upto:], max(self._scanned - upto, 0)

    def _drop(self) -> Iterator[tuple[int, bytes | None]]:
        """Forget a value that is too long, but for what decides how its rest is scanned: an open string."""
        if not self._dropping:
            yield self._line, None
        self._dropping = True
        done = _NO_BRACKET.match(self._held, self._scanned)
        string = self._held[done.end() :] if done else b""
        escapes = len(string) - len(string.rstrip(b"\\"))
        self._take(len(self._held))
        if string:
            self._held = b'"' + b"\\" * (escapes % 2)

    @staticmethod
    def _lines_before(held: bytes) -> int:
        return held[: len(held) - len(held.lstrip(_BETWEEN))].count(b"\n")
