"""Secrets recognised by the name before them: vendors' names, strong names, weak names."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agent.core.redaction.randomness import is_digest, is_fill_in, is_placeholder, is_uuid, looks_random
from agent.core.redaction.rules import SecretRules, ServiceName
from agent.core.redaction.spans import WEAK, Span

_SIGN = r"(?:=>|->|\|\||:{1,3}=?|\?=|[=>,]|%3[AaDd])"
_GAP = r"[\x20\t\w.\x80-\xff-]{0,40}[\s'\"\\`\x80-\xff]{0,6}"
_TAIL = _GAP + _SIGN + r"[\s'\"`=\\]{0,6}([\w.=~+/%-]{8})"
_RUN = r"[\w.=~+/%:-]*"
_BARE = r"(?:\[redacted:[a-z0-9-]+\]|[^\s'\"`,;&<>()\[\]{}\\])+"
_STRONG_TAIL = (
    r"['\"\\\]]{0,4}\s{0,3}(?:=>|:=|[:=]|%3[AaDd])\s{0,3}(?:[\[(]\s?)?b?"
    r"(?:\\*\"([^\"\n]{4,})\"|\\*'([^'\n]{4,})'|(" + _BARE + r"))"
)
_IDENTIFIER = re.compile(
    r"[A-Za-z_]+(?:[.][A-Za-z_]+)*|[a-z]+_[a-z_]+\.[a-z][a-z0-9_]*|[0-9.,]{1,9}|[0-9]+(?:\.[0-9]+)*%?"
)
_BESIDE_A_MAKER = 4.2
"""Letters per run that still pass for chance behind a maker's name; names of classes have five and more."""
_NAME, _WEAK_VALUE = 1, 2
_TAIL_VALUE = 1
_VALUES = (2, 3, 4)
_BARE_GROUP = 4
_UPPER_NAME = re.compile(rb"[A-Z][A-Z0-9_]*=")


class Assignments:
    """Names before values."""

    def __init__(self, rules: SecretRules, compiled: Callable[[str], Any]) -> None:
        self._services = rules.services
        self._tail = compiled(_TAIL)
        self._run = compiled(_RUN)
        self._weak = compiled(f"(?i)({'|'.join(rules.weak)}){_TAIL}")
        self._strong = compiled(f"(?i)({'|'.join(rules.strong)}){_STRONG_TAIL}")

    def named(self, data: bytes) -> Iterator[Span]:
        """Yield values beside strong and weak names."""
        for found in self._strong.finditer(data):
            start, end = max(found.span(group) for group in _VALUES)
            quoted = start != found.span(_BARE_GROUP)[0]
            if _believed(data, found.start(), start, end, quoted=quoted):
                yield Span(start=start, end=end, kind="credential", rank=2, since=found.start())
        position = run_end = 0
        while (found := self._weak.search(data, position)) is not None:
            start, end = found.span(_WEAK_VALUE)
            run_end = end = run_end if end <= run_end else self._run.match(data, start).end()
            value = data[start : min(end, start + 256)].decode("latin-1").rstrip(":.")
            # The value may itself hold the next name ("api: auth.token=..."), so the search goes on inside a dull one.
            position = max(start, found.end(_NAME))
            if looks_random(value) or (_is_token(data, found) and is_digest(value)):
                position = end
                yield Span(start=start, end=end, kind="random-value", rank=WEAK, since=found.start())

    def of_service(self, index: int, data: bytes, places: Sequence[tuple[int, int]]) -> Iterator[Span]:
        """Yield values beside the name of one maker."""
        service = self._services[index]
        done = run_end = 0
        for since, after in places:
            if after < done:
                continue
            found = self._tail.match(data, after)
            if found is None:
                continue
            start, end = found.span(_TAIL_VALUE)
            run_end = end = run_end if end <= run_end else self._run.match(data, start).end()
            done = start
            if _fits(service, data[start : min(end, start + 256)].decode("latin-1")):
                done = end
                yield Span(start=start, end=end, kind=f"{service.kind}-credential", rank=1, since=since)


def _is_token(data: bytes, found: Any) -> bool:
    return data[found.start(_NAME) : found.start(_WEAK_VALUE)].lower() in {b"token=", b"secret=", b"key=sk"}


def _believed(data: bytes, since: int, start: int, end: int, *, quoted: bool) -> bool:
    value = data[start : min(end, start + 256)].decode("latin-1")
    if len(value) < 4 or is_placeholder(value):
        return False
    if quoted or looks_random(value):
        return True
    if is_fill_in(value):
        return False
    environment = _UPPER_NAME.search(data, max(0, since - 1), start) is not None and data[since : since + 1].isupper()
    return environment or not _IDENTIFIER.fullmatch(value)


def _fits(service: ServiceName, value: str) -> bool:
    bare = value.strip("=.:")
    if len(bare) < service.least:
        return False
    if service.hex:
        return is_digest(bare)
    return bare.isdigit() or is_digest(bare) or is_uuid(bare) or looks_random(bare, letters_per_run=_BESIDE_A_MAKER)
