"""Finds secrets in bytes: one prefilter pass, then linear-time confirmation around what it hit."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import ahocorasick_rs
import re2

from agent.core.redaction.assignments import Assignments
from agent.core.redaction.randomness import is_fill_in, is_placeholder, looks_random
from agent.core.redaction.rules import SecretRules, TokenFormat
from agent.core.redaction.spans import Span, drop_marked, merge_spans, widen_to_characters

_EDGE = r"(?:\b|_|\\+[nrtbfv]|\\+u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]*m)"
"""Where a token may begin: at a word's edge, or right behind an escape whose letter only seems to belong to it."""


def compiled(pattern: str) -> Any:
    """Compile RE2 source over bytes, one byte a sign; linear in the text whatever the pattern.

    Raises:
        re2.error: The source is not RE2.
    """
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    options.log_errors = False
    return re2.compile(pattern.encode(), options)


class _Confirmer:
    """A token format; compiled when its words stand in a text for the first time, for most never do.

    Args:
        form: Whose pattern was compiled once before, when the rules were validated.
    """

    def __init__(self, form: TokenFormat) -> None:
        self.form = form

    @cached_property
    def pattern(self) -> Any:
        return compiled(f"{_EDGE}(?P<secret>{self.form.pattern})" if self.form.edge else self.form.pattern)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        names = self.pattern.groupindex
        return tuple(names[name] for name in (b"secret", b"second") if name in names) or (0,)

    def spans(self, data: bytes, hits: Sequence[tuple[int, int]]) -> Iterator[Span]:
        """Search around hits; windows that overlap are one, so that each byte is read once."""
        low = high = -1
        for start, end in hits:
            if start - self.form.back <= high:
                high = max(high, end + self.form.reach)
                continue
            yield from self._searched(data, low, high)
            low, high = start - self.form.back, end + self.form.reach
        yield from self._searched(data, low, high)

    def _searched(self, data: bytes, low: int, high: int) -> Iterator[Span]:
        until = min(len(data), high)
        if until > 0:
            for found in self.pattern.finditer(data, max(0, low), until):
                yield from self._span(data, found, until)

    def _span(self, data: bytes, found: Any, until: int) -> Iterator[Span]:
        for group in self.groups:
            start, end = found.span(group)
            if start < 0 or end <= start:
                continue
            if end == until:
                end = run_end(data, end)
            if self._counts(data[start : min(end, start + 256)].decode("latin-1")):
                yield Span(start=start, end=end, kind=self.form.kind, rank=0, since=found.start())

    def _counts(self, value: str) -> bool:
        if self.form.named and (is_placeholder(value) or is_fill_in(value)):
            return False
        return not self.form.random or looks_random(value)


_RUN = compiled(r"[^\s'\"<>,;]*")


def run_end(data: bytes, position: int) -> int:
    """Return where the unbroken run of a value ends that a window cut off at `position`."""
    found = _RUN.match(data, position)
    return int(found.end()) if found else position


class Scanner:
    """Compiled rules; finds spans in bytes."""

    def __init__(self, rules: SecretRules) -> None:
        self._confirmers = tuple(_Confirmer(form) for form in rules.formats)
        self._across = tuple(each.form.across for each in self._confirmers)
        self._assignments = Assignments(rules, compiled)
        words = [(word, index) for index, each in enumerate(self._confirmers) for word in each.form.keywords] + [
            (word, -1 - index) for index, service in enumerate(rules.services) for word in service.words
        ]
        self._owners: list[list[int]] = []
        spelled: dict[str, int] = {}
        for word, owner in words:
            if word not in spelled:
                spelled[word] = len(self._owners)
                self._owners.append([])
            self._owners[spelled[word]].append(owner)
        self._own_sieve = [index for index, each in enumerate(self._confirmers) if not each.form.keywords]
        self._sieve = compiled("|".join(f"(?:{rules.formats[index].pattern})" for index in self._own_sieve) or r"\z.")
        self._prefilter = ahocorasick_rs.BytesAhoCorasick([word.encode() for word in spelled])

    def spans(self, data: bytes) -> list[Span]:
        """Return where secrets stand, in order, without overlap; marks of an earlier pass are left alone.

        Args:
            data: UTF-8 (lone surrogates allowed) of any length.

        Returns:
            Spans in bytes, widened to whole letters. Time is linear in the length, with a factor bounded by the rules.
        """
        return self._spans(data, across_only=False)

    def glued(self, data: bytes) -> list[Span]:
        """Return spans of what may stand halved in two entries, for entries that were joined without a line end."""
        return self._spans(data, across_only=True)

    def _spans(self, data: bytes, *, across_only: bool) -> list[Span]:
        found = [*self._formats(data, across_only=across_only), *self._assignments.named(data)]
        return drop_marked(data, merge_spans(widen_to_characters(data, span) for span in found))

    def _formats(self, data: bytes, *, across_only: bool) -> Iterator[Span]:
        hits: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for word, start, end in self._prefilter.find_matches_as_indexes(data.lower(), overlapping=True):
            for owner in self._owners[word]:
                hits[owner].append((start, end))
        for found in self._sieve.finditer(data):
            for owner in self._own_sieve:
                hits[owner].append(found.span())
        for owner, places in hits.items():
            if owner < 0:
                if not across_only:
                    yield from self._assignments.of_service(-1 - owner, data, places)
            elif self._across[owner] or not across_only:
                yield from self._confirmers[owner].spans(data, places)
