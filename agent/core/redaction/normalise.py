"""A text as people see it: no terminal codes, no invisible letters, escapes decoded; and where each byte came from."""

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from agent.core.redaction.spans import Span

DECODED_LEVELS = 4
"""JSON inside JSON inside a log entry inside a Pub/Sub message has four; deeper is not decoded."""

NARROWEST = 40
"""Columns of the narrowest terminal whose wrapped lines are joined again; rich takes 80 where it knows no width."""

_TERMINAL = (
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor: ECMA-48 5.4
    rb"|(?:\x1b[\]PX^_]|\xc2[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\n]{0,512}(?:\x07|\x1b\\|\xc2\x9c)"  # titles, links
    rb"|\x1b[ -/]{0,8}[0-Z\\^-~]"
)
_INVISIBLE = (
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c|\xe1\x85[\x9f\xa0]|\xe1\x9e[\xb4\xb5]"
    rb"|\xe1\xa0[\x8b-\x8f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xe3\x85\xa4|\xef\xb8[\x80-\x8f]"
    rb"|\xef\xbb\xbf|\xef\xbe\xa0|\xef\xbf[\xb9-\xbb]|\xf3\xa0[\x80-\x87][\x80-\xbf]"
)
"""Controls, soft hyphen, joiners, zero-width and bidirectional marks, fillers, selectors, tags: Unicode 16."""

_ESCAPE = (
    rb"\\+u[0-9a-fA-F]{4}|\\+u\{[0-9a-fA-F]{1,6}\}|\\+x[0-9a-fA-F]{2}|\\+(?:0[0-3]|[0-3][0-7])[0-7]"
    rb"|\\+[\"'/nrtbfeva]|\\\\+|%[0-9a-fA-F]{2}"
)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"", b"f": b"", b"e": b"\x1b", b"v": b"", b"a": b""}

_UNSEEN_RE = re.compile(_TERMINAL + b"|" + _INVISIBLE)
_ESCAPE_RE = re.compile(_ESCAPE)
_BLANKS_RE = re.compile(rb"[ \t\r\n]{2,}")
_PLACE_RE = re.compile(rb"[ \t]{1,99}[\w./-]{1,64}\.py:\d{1,6}$")
_BORDERS = (b"\xe2\x94\x82", b"\xe2\x95\x91")

Edit = tuple[int, int, bytes]
"""First byte, last-plus-one byte, and what stands there instead."""


class View:
    """What a text shows, and where each byte of it stands in the text.

    This one is the text itself.

    Attributes:
        data: The bytes shown.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data

    def raw(self, span: Span) -> Span:
        """Return the span of the text that shows this span of the view."""
        start, end = self.first(span.start), self.last(span.end - 1)
        return Span(start=start, end=end, kind=span.kind, rank=span.rank, since=min(start, self.first(span.since)))

    def first(self, at: int) -> int:
        """Return the first byte of the text that shows byte `at` of the view."""
        return at

    def last(self, at: int) -> int:
        """Return the byte of the text after the last that shows byte `at` of the view."""
        return at + 1


class _EditedView(View):
    """A view in which something stands no more, or stands otherwise.

    Args:
        data: The bytes shown.
        before: The view that was edited.
        edits: Finds the edits in `before`, in order; asked only when a place is wanted.
    """

    def __init__(self, data: bytes, before: View, edits: Callable[[], Sequence[Edit]]) -> None:
        super().__init__(data)
        self._before = before
        self._edits = edits

    def first(self, at: int) -> int:
        """Return the first byte of the text that shows byte `at` of the view."""
        low, _, offset = self._piece(at)
        return self._before.first(low if offset is None else low + offset)

    def last(self, at: int) -> int:
        """Return the byte of the text after the last that shows byte `at` of the view."""
        low, high, offset = self._piece(at)
        return self._before.last(high - 1 if offset is None else low + offset)

    def _piece(self, at: int) -> tuple[int, int, int | None]:
        """Return where a byte's piece stands in the view before, and how far it is in it where it was copied."""
        starts, pieces = self._pieces
        index = bisect_right(starts, at) - 1
        low, high, copied = pieces[index]
        return low, high, at - starts[index] if copied else None

    @cached_property
    def _pieces(self) -> tuple[list[int], list[tuple[int, int, bool]]]:
        starts: list[int] = []
        pieces: list[tuple[int, int, bool]] = []
        size = position = 0
        for start, end, becomes in (*self._edits(), (len(self._before.data), len(self._before.data), b"")):
            if start > position:
                starts.append(size)
                pieces.append((position, start, True))
                size += start - position
            if becomes:
                starts.append(size)
                pieces.append((start, end, False))
                size += len(becomes)
            position = end
        return starts, pieces


class Normaliser:
    """Finds what hides letters from a search, and takes it away."""

    def __init__(self, compiled: Callable[[str], Any]) -> None:
        self._hides = compiled("|".join(each.decode("latin-1") for each in (_TERMINAL, _INVISIBLE, _ESCAPE)))

    def hides(self, data: bytes) -> bool:
        """Say whether anything in the text is not what it looks like; one fast pass."""
        return self._hides.search(data) is not None

    def views(self, data: bytes) -> list[View]:
        """Return what `data` shows beside itself, most often nothing: one view for each level of escapes.

        Args:
            data: UTF-8, lone surrogates allowed.

        Returns:
            At most `DECODED_LEVELS` + 1 views that differ from the text and from each other; linear in the text.
        """
        if not self.hides(data):
            return []
        found: list[View] = []
        view = View(data)
        for level in range(DECODED_LEVELS + 1):
            decoded = _replaced(view, _ESCAPE_RE, _decoded) if level else view
            if level and decoded is view:
                break
            view = _replaced(decoded, _UNSEEN_RE, _nothing)
            if not view.data:
                break
            if view.data is not data:
                found.append(view)
        return found


def unwrap_lines(data: bytes) -> View:
    """Return a text as it was before a terminal's width broke its lines and its tabs became blanks.

    A line that is as wide as the widest was cut inside a word; one to which the next word would not have fitted was cut
    at a blank. Blanks in a row become one.
    """
    whole = View(data)
    edits = _broken(data)
    joined = _EditedView(_edited(data, edits), whole, lambda: edits) if edits else whole
    return _replaced(joined, _BLANKS_RE, _one_blank)


def rows(data: bytes) -> list[tuple[int, bytes]]:
    """Return the lines without indent, panel border and the place in the code that rich writes at the right edge.

    Returns:
        For each its first byte in the text, and what it says.
    """
    found: list[tuple[int, bytes]] = []
    position = 0
    for line in data.split(b"\n"):
        row = line.rstrip()
        if row.endswith(_BORDERS):
            row = row[:-3].rstrip()
        if b".py:" in row[-16:]:
            row = _PLACE_RE.sub(b"", row[-256:]) if len(row) <= 256 else row[:-256] + _PLACE_RE.sub(b"", row[-256:])
            row = row.rstrip()
        bare = row.lstrip()
        if bare.startswith(_BORDERS):
            bare = bare[3:].lstrip()
        found.append((position + len(row) - len(bare), bare))
        position += len(line) + 1
    return found


def _broken(data: bytes) -> list[Edit]:
    """Return the line ends that a terminal's width made, and what stood there."""
    lines = data.split(b"\n")
    stripped = [line.rstrip() for line in lines]
    widths = [_width(line) for line in stripped]
    widest = max(widths)
    if len(lines) < 2 or widest < NARROWEST:
        return []
    edits: list[Edit] = []
    position = 0
    for (line, follows), bare, width in zip(pairwise(lines), stripped, widths, strict=False):
        rest = follows.lstrip(b" \t")
        if rest and width + 1 + _width(rest.split(None, 1)[0] if rest.strip() else b"") > widest:
            until = position + len(line) + 1 + len(follows) - len(rest)
            edits.append((position + len(bare), until, b"" if width == widest else b" "))
        position += len(line) + 1
    return edits


def _width(line: bytes) -> int:
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))


def _edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    pieces: list[bytes] = []
    position = 0
    for start, end, becomes in edits:
        pieces += [data[position:start], becomes]
        position = end
    return b"".join([*pieces, data[position:]])


def _replaced(view: View, pattern: re.Pattern[bytes], becomes: Callable[[re.Match[bytes]], bytes]) -> View:
    """Replace what the pattern finds in a view; the very same view where it finds nothing."""
    data, count = pattern.subn(becomes, view.data)
    if count == 0:
        return view
    return _EditedView(data, view, lambda: [(*found.span(), becomes(found)) for found in pattern.finditer(view.data)])


def _one_blank(found: re.Match[bytes]) -> bytes:
    return b"\n" if b"\n" in found[0] else b" "


def _nothing(_found: re.Match[bytes]) -> bytes:
    return b""


def _decoded(found: re.Match[bytes]) -> bytes:
    """Return what an escape stands for; of two or more backslashes each level takes half."""
    escape = found[0]
    if escape[:1] == b"%":
        return bytes([int(escape[1:], 16)])
    rest = escape.lstrip(b"\\")
    slashes = len(escape) - len(rest)
    if slashes > 1:
        return b"\\" * (slashes // 2) + rest
    if rest[:1] == b"u":
        return chr(min(int(rest[1:].strip(b"{}"), 16), sys.maxunicode)).encode("utf-8", "surrogatepass")
    if rest[:1] == b"x":
        return bytes([int(rest[1:], 16)])
    if rest[:1].isdigit():
        return bytes([int(rest, 8)])
    return _LETTERS.get(rest, rest)
