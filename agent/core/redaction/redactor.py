"""Takes secrets out of texts, lines and log entries."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from agent.core.redaction.normalise import Normaliser, View, rows, unwrap_lines
from agent.core.redaction.randomness import looks_random
from agent.core.redaction.rules import SecretRules
from agent.core.redaction.scan import Scanner, compiled
from agent.core.redaction.spans import WEAK, Span, drop_marked, merge_spans, replace_spans, widen_to_characters

ROUNDS = 8
"""Passes at most: what one pass takes out can lay bare the edge of the next secret; two are the rule."""

_LIKELY_WHOLE = 16
"""Bytes of a secret after which a rest that reads like a word is taken for the next entry's own."""


@dataclass(frozen=True, kw_only=True)
class Redacted:
    """A text without its secrets.

    Attributes:
        text: The text, each secret replaced by ``[redacted:KIND]``.
        found: The kinds, one per replacement, in the order in which they were made.
    """

    text: str
    found: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One replacement in one of many entries: its index and the kind."""

    index: int
    kind: str


@dataclass(frozen=True, kw_only=True)
class RedactedLines:
    """Many entries without their secrets, as many as went in and in their order."""

    lines: tuple[str, ...]
    found: tuple[Finding, ...]


class Redactor:
    """Replaces secrets by ``[redacted:KIND]``, whole and for good.

    A text is read as it stands and as it is shown: without terminal codes, invisible letters and line wraps, and with
    its JSON, backslash and URL escapes decoded. What is found in any of these readings is taken out of the text itself;
    the rest stays as it was. The same text always gives the same result, a result gives itself, and time is linear in
    the length of the text whatever stands in it. Nothing of a found secret stays, neither its first letters nor its
    length.

    Not promised: a secret without any known form, name or context (a bare 40-digit hexadecimal number is taken for a
    revision); one in base64, encrypted, written backwards or interleaved with visible signs; a short word used as a
    password in a sentence. More than a secret may be taken (rests of a header line, values of test keys).
    """

    def __init__(self, rules: SecretRules) -> None:
        self._scanner = Scanner(rules)
        self._normaliser = Normaliser(compiled)
        self.dated = rules.dated

    def redact(self, text: str) -> Redacted:
        """Redact one text.

        Args:
            text: Any text, lone surrogates included, of any length; may have many lines.
        """
        data = text.encode("utf-8", "surrogatepass")
        kinds: list[str] = []
        for _ in range(ROUNDS):
            spans = self._spans(data)
            if not spans:
                break
            kinds += [span.kind for span in spans]
            data = replace_spans(data, spans)
        return Redacted(text=data.decode("utf-8", "surrogatepass") if kinds else text, found=tuple(kinds))

    def redact_lines(self, lines: Iterable[str]) -> RedactedLines:
        """Redact log entries together: much faster than one by one, and halves in neighbouring entries are found.

        Args:
            lines: Entries in their order; an entry may itself have several lines.

        Returns:
            As many entries; each that held part of a secret carries its mark, each other is the same object as before.
        """
        clean = list(lines)
        found: list[Finding] = []
        blocks = [(0, len(clean))]
        for _ in range(ROUNDS):
            changed: list[int] = []
            for low, high in blocks:
                for offset, spans in self._pieces(clean[low:high]).items():
                    index = low + offset
                    data = clean[index].encode("utf-8", "surrogatepass")
                    clean[index] = replace_spans(data, spans).decode("utf-8", "surrogatepass")
                    found += [Finding(index=index, kind=span.kind) for span in spans]
                    changed.append(index)
            blocks = _around(changed, len(clean))
        return RedactedLines(lines=tuple(clean), found=tuple(found))

    def _spans(self, data: bytes) -> list[Span]:
        """Return what stands in one text, in any of its readings, in bytes of the text."""
        found = self._scanner.spans(data)
        views = self._normaliser.views(data)
        if not views and b"\n" not in data:
            return found
        found += self._wrapped(data)
        for view in views:
            found += [view.raw(span) for span in (*self._scanner.spans(view.data), *self._wrapped(view.data))]
        return _in_order(data, found)

    def _wrapped(self, data: bytes) -> list[Span]:
        """Return what stands over line ends where a terminal's width may have broken it."""
        if b"\n" not in data:
            return []
        lines = rows(data)
        pieces: dict[int, list[Span]] = {}
        self._across_seams(pieces, [row for _, row in lines])
        found = [_moved(span, lines[index][0]) for index, spans in pieces.items() for span in spans]
        shown = unwrap_lines(data)
        if shown.data is not data:
            found += [part for span in self._scanner.spans(shown.data) for part in _by_line(data, shown.raw(span))]
        return found

    def _pieces(self, entries: Sequence[str]) -> dict[int, list[Span]]:
        """Return spans by entry, in bytes of that entry."""
        encoded = [entry.encode("utf-8", "surrogatepass") for entry in entries]
        pieces: dict[int, list[Span]] = {}
        whole = b"\n".join(encoded)
        _share(pieces, self._scanner.spans(whole), encoded, gap=1)
        if not self._normaliser.hides(whole):
            self._across_seams(pieces, encoded)
            return pieces
        views = {index: made for index, each in enumerate(encoded) if (made := self._normaliser.views(each))}
        self._across_seams(pieces, encoded)
        for low, high in _around(sorted(views), len(encoded)):
            self._shown(pieces, encoded, {i: views[i][-1] for i in range(low, high) if i in views}, low, high)
        for index, made in views.items():
            inner = [view.raw(span) for view in made[:-1] for span in self._scanner.spans(view.data)]
            if inner:
                pieces.setdefault(index, []).extend(inner)
        return {index: clean for index, spans in pieces.items() if (clean := _in_order(encoded[index], spans))}

    def _shown(
        self, pieces: dict[int, list[Span]], encoded: Sequence[bytes], views: dict[int, View], low: int, high: int
    ) -> None:
        """Add what stands in the entries from `low` to below `high` as they are shown, seams included."""
        shown = [views[index].data if index in views else encoded[index] for index in range(low, high)]
        found: dict[int, list[Span]] = {}
        _share(found, self._scanner.spans(b"\n".join(shown)), shown, gap=1)
        self._across_seams(found, shown)
        for offset, spans in found.items():
            index = low + offset
            raw = [views[index].raw(span) for span in spans] if index in views else spans
            pieces.setdefault(index, []).extend(raw)

    def _across_seams(self, pieces: dict[int, list[Span]], encoded: Sequence[bytes]) -> None:
        """Add what stands halved in neighbouring entries."""
        glued = self._scanner.glued(b"".join(encoded)) if len(encoded) > 1 else ()
        if glued:
            starts = list(accumulate((len(each) for each in encoded), initial=0))
            for span in glued:
                _adopt(pieces, span, starts, encoded)


def _share(pieces: dict[int, list[Span]], spans: Sequence[Span], encoded: Sequence[bytes], *, gap: int) -> None:
    """Share spans of the joined entries among them."""
    if spans:
        starts = list(accumulate((len(each) + gap for each in encoded), initial=0))
        for span in spans:
            _cut(pieces, span, starts, gap=gap)


def _in_order(data: bytes, spans: Sequence[Span]) -> list[Span]:
    return drop_marked(data, merge_spans(widen_to_characters(data, span) for span in spans))


def _by_line(data: bytes, span: Span) -> Iterator[Span]:
    """Yield the parts of a span in each line, so that the line ends stay."""
    start = span.start
    while start < span.end:
        end = data.find(b"\n", start, span.end)
        end = span.end if end < 0 else end
        if end > start:
            yield Span(start=start, end=end, kind=span.kind, rank=span.rank, since=min(span.since, start))
        start = end + 1


def _moved(span: Span, by: int) -> Span:
    return Span(start=span.start + by, end=span.end + by, kind=span.kind, rank=span.rank, since=span.since + by)


def _random_throughout(shares: dict[int, list[Span]], encoded: Sequence[bytes]) -> bool:
    parts = [
        encoded[index][each.start : each.end].decode("latin-1") for index, spans in shares.items() for each in spans
    ]
    return (
        len(parts) > 1 and any(map(looks_random, parts)) and all(len(each) < 7 or looks_random(each) for each in parts)
    )


def _around(changed: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Return what is to be looked at again: changed entries with a neighbour each side, as [low, high) blocks."""
    blocks: list[tuple[int, int]] = []
    for index in sorted(changed):
        low, high = max(0, index - 1), min(count, index + 2)
        if blocks and low <= blocks[-1][1]:
            blocks[-1] = (blocks[-1][0], high)
        else:
            blocks.append((low, high))
    return blocks


def _cut(pieces: dict[int, list[Span]], span: Span, starts: Sequence[int], *, gap: int) -> None:
    """Share a span among the entries that it runs over."""
    index = bisect_right(starts, span.start) - 1
    while index < len(starts) - 1 and starts[index] < span.end:
        low = max(span.start, starts[index]) - starts[index]
        high = min(span.end, starts[index + 1] - gap) - starts[index]
        if low < high:
            one = Span(start=low, end=high, kind=span.kind, rank=span.rank, since=low)
            pieces.setdefault(index, []).append(one)
        index += 1


def _adopt(pieces: dict[int, list[Span]], span: Span, starts: Sequence[int], encoded: Sequence[bytes]) -> None:
    """Take over a span across a seam, without the first word of a stranger that only stands behind a whole secret."""
    first = bisect_right(starts, span.since) - 1
    if span.end <= starts[first + 1]:
        return
    shares: dict[int, list[Span]] = {}
    _cut(shares, span, starts, gap=0)
    last = max(shares)
    rest = shares[last][0]
    known = any(span.start < starts[first] + each.end for each in pieces.get(first, ()))
    whole = known or span.end - span.start - (rest.end - rest.start) >= _LIKELY_WHOLE
    if whole and not looks_random(encoded[last][rest.start : rest.end].decode("latin-1")):
        del shares[last]
    if span.rank == WEAK and not _random_throughout(shares, encoded):
        return
    for index, parts in shares.items():
        pieces[index] = merge_spans([*pieces.get(index, ()), *parts])
