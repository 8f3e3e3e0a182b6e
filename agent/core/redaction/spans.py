"""Where secrets stand in a text: spans, their union, and the marks that take their place."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MARK = re.compile(rb"\[redacted:[a-z0-9-]{1,64}\]")
"""What stands in place of a secret: ``[redacted:KIND]``."""

_MARKS_ONLY = re.compile(rb"(?:\[redacted:[a-z0-9-]{1,64}\])+")


WEAK = 3
"""Rank of a value that only its looks and a weak name give away."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """One secret, in bytes of the text that was scanned.

    Attributes:
        start: First byte of the secret.
        end: Byte after its last.
        kind: What it is.
        rank: 0 a format, 1 a maker's name, 2 a strong name, 3 a weak one; the lowest names a union.
        since: First byte of what led to it (the name before the value); never after `start`.
    """

    start: int
    end: int
    kind: str
    rank: int
    since: int


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Join overlapping spans, so that nothing of any of them stays; in order of place."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.start, one.rank)):
        if joined and span.start < joined[-1].end:
            last = joined[-1]
            best = min(last, span, key=lambda one: one.rank)
            joined[-1] = Span(
                start=last.start,
                end=max(last.end, span.end),
                kind=best.kind,
                rank=best.rank,
                since=min(last.since, span.since),
            )
        else:
            joined.append(span)
    return joined


def drop_marked(data: bytes, spans: Sequence[Span]) -> list[Span]:
    """Leave out what is a mark already, and cut spans that begin or end inside a mark to its border."""
    if not spans or b"[redacted:" not in data:
        return list(spans)
    marks = [(found.start(), found.end()) for found in MARK.finditer(data)]
    kept = []
    position = 0
    for span in spans:
        while position < len(marks) and marks[position][1] <= span.start:
            position += 1
        cut = _outside(span, marks, position)
        if cut.start < cut.end and not _MARKS_ONLY.fullmatch(data, cut.start, cut.end):
            kept.append(cut)
    return kept


def _outside(span: Span, marks: list[tuple[int, int]], position: int) -> Span:
    start, end = span.start, span.end
    while position < len(marks) and marks[position][0] < end:
        opens, closes = marks[position]
        if opens < start < closes:
            start = closes
        if opens < end < closes:
            end = closes
        position += 1
    return Span(start=start, end=end, kind=span.kind, rank=span.rank, since=min(span.since, start))


def widen_to_characters(data: bytes, span: Span) -> Span:
    """Widen a span to the borders of UTF-8 letters, so that both sides stay readable."""
    start, end = span.start, span.end
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    if (start, end) == (span.start, span.end):
        return span
    return Span(start=start, end=end, kind=span.kind, rank=span.rank, since=min(span.since, start))


def replace_spans(data: bytes, spans: Sequence[Span]) -> bytes:
    """Put marks in place of spans, which are in order and do not overlap."""
    pieces = []
    position = 0
    for span in spans:
        pieces += [data[position : span.start], mark(span.kind)]
        position = span.end
    pieces.append(data[position:])
    return b"".join(pieces)


def mark(kind: str) -> bytes:
    """Return ``[redacted:KIND]``."""
    return f"[redacted:{kind}]".encode()
