"""An index of compiled signatures: the prefilter's literals lead to the entries that may stand in a line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent.failures.finding import LineMatch
from agent.failures.match.phrase import BEFORE_WHOLE_LINE, Phrase, parse_phrase
from agent.failures.match.prefilter import Prefilter
from agent.failures.recovered import MACHINE_FROM
from agent.failures.signature import TROUBLE, Role, Signature
from agent.failures.text.client_text import CLIENT_MARKS, without_client_words
from agent.failures.text.streams import body_of
from agent.failures.text.subjects import Subject, subject_of

MEMO_ENTRIES = 4096
"""Distinct combinations of literals remembered; a hostile log can make no more."""

_BEFORE = re.compile(BEFORE_WHOLE_LINE.encode())

_SPELLED_OTHERWISE = {
    "INFO": rb"(?:\[rank\d{1,5}\]:)?\[?[ID]\d{3,4} \d\d:|(?:.{0,60}\btime=\S{1,40} )?level=\"?(?:info|debug)\b",
    "WARNING": rb"(?:\[rank\d{1,5}\]:)?\[?W\d{3,4} \d\d:|(?:.{0,60}\btime=\S{1,40} )?level=\"?warn",
}
"""A level that an entry vetoes, as glog, klog and logfmt write it."""

_MAY_HAVE_LEVEL = re.compile(rb"[IDW]\d{3,4} \d\d:|level=")
MOST_BEFORE_LEVEL = 600
"""Names and times of collectors, and the level behind them, stand within so many bytes; most lines have neither."""

_ROLE_ORDER = {role: -position for position, role in enumerate(Role)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """An entry with its phrases taken apart.

    Attributes:
        plain_vetoes: Those of one part, ``gapped_vetoes`` the others; case matters.
        level_veto: The levels among them, as other loggers spell them at the head of a line.
        skips_programs: By itself a line that names another program is no trouble (text/subjects.py).
        line_match: What a line is by itself; None for an entry that asks for more than its words.
    """

    entry: Signature
    phrases: tuple[Phrase, ...]
    plain_vetoes: tuple[bytes, ...]
    gapped_vetoes: tuple[Phrase, ...]
    level_veto: re.Pattern[bytes] | None
    context: tuple[Phrase, ...]
    text_vetoes: tuple[Phrase, ...]
    skips_programs: bool
    line_match: LineMatch | None

    def stands_in(self, line: bytes, raw: bytes, unconfirmed: tuple[Phrase, ...]) -> bool:
        """Whether the entry stands in a line; written as loops, for it runs on every line of a storm.

        Args:
            line: In lower case.
            raw: As it is.
            unconfirmed: Phrases of which one must stand there; empty where a phrase is known to.
        """
        if self.entry.whole_line:
            whole = any(_is_whole(phrase.anchor, line) or _is_whole_body(phrase.anchor, raw) for phrase in self.phrases)
            return whole and not self._is_vetoed(raw)
        if not unconfirmed:
            return not self._is_vetoed(raw)
        for phrase in unconfirmed:
            if phrase.stands_in(line):
                return not self._is_vetoed(raw)
        return False

    def _is_vetoed(self, raw: bytes) -> bool:
        for veto in self.plain_vetoes:
            if veto in raw:
                return True
        for gapped in self.gapped_vetoes:
            if gapped.anchor in raw and gapped.stands_in(raw):
                return True
        if self.level_veto is None or _MAY_HAVE_LEVEL.search(raw, 0, MOST_BEFORE_LEVEL) is None:
            return False
        return self.level_veto.match(raw) is not None or self.level_veto.match(_body(raw)) is not None

    def skips(self, raw: bytes) -> bool:
        """Whether the line names another program, and the entry is none of what may strike the server as well."""
        return self.skips_programs and subject_of(raw.decode("utf-8", "surrogatepass")) is Subject.PROGRAM

    def fits_text(self, text: bytes) -> bool:
        """Whether the whole lower-case text holds what the entry asks for elsewhere, and nothing that rules it out."""
        if self.context and not any(phrase.stands_in(text) for phrase in self.context):
            return False
        return not any(phrase.stands_in(text) for phrase in self.text_vetoes)


Candidates = tuple[tuple[Compiled, tuple[Phrase, ...]], ...]
"""Entries that may stand in a line, strongest first, each with the phrases that must still be confirmed."""


class Index:
    """Signatures that are searched together.

    Args:
        compiled: At least one.
        claims: Harmless entries that take a line for themselves: no trouble is found in a line with a phrase of theirs.
    """

    def __init__(self, compiled: Sequence[Compiled], *, claims: Sequence[Compiled] = ()) -> None:
        self._compiled = sorted(compiled, key=lambda one: _strength(one.entry), reverse=True)
        anchors: dict[bytes, list[tuple[int, Phrase]]] = {}
        for number, one in enumerate(self._compiled):
            for phrase in one.phrases:
                anchors.setdefault(phrase.anchor, []).append((number, phrase))
        claiming = {phrase.anchor for one in claims for phrase in one.phrases}
        for anchor in claiming:
            anchors.setdefault(anchor, [])
        self._claiming = frozenset(number for number, anchor in enumerate(anchors) if anchor in claiming)
        self._owners = list(anchors.values())
        self._prefilter = Prefilter(list(anchors), marks=CLIENT_MARKS, rewrite=without_client_words)
        self._memo: dict[tuple[int, ...], Candidates] = {}

    def sightings(self, lines: Iterable[str]) -> Iterator[tuple[int, Compiled]]:
        """Yield (line index, entry) for every entry that stands in a line, strongest first within a line."""
        for index, literals, line, raw in self._prefilter.scan(lines):
            for compiled, unconfirmed in self._memo.get(literals) or self._candidates(literals):
                if compiled.stands_in(line, raw, unconfirmed):
                    yield index, compiled

    def strongest(self, lines: Iterable[str]) -> Iterator[tuple[int, LineMatch]]:
        """Yield (line index, the strongest match of the line) for every line in which an entry stands."""
        memo = self._memo
        for index, literals, line, raw in self._prefilter.scan(lines):
            for compiled, unconfirmed in memo.get(literals) or self._candidates(literals):
                match = compiled.line_match
                if match is not None and compiled.stands_in(line, raw, unconfirmed) and not compiled.skips(raw):
                    yield index, match
                    break

    def _candidates(self, literals: tuple[int, ...]) -> Candidates:
        sure: set[int] = set()
        doubtful: dict[int, list[Phrase]] = {}
        for literal in set(literals):
            for number, phrase in self._owners[literal]:
                if len(phrase.parts) == 1:
                    sure.add(number)
                else:
                    doubtful.setdefault(number, []).append(phrase)
        claimed = not self._claiming.isdisjoint(literals)
        candidates = tuple(
            (self._compiled[number], () if number in sure else tuple(doubtful[number]))
            for number in sorted(sure.union(doubtful))
            if not (claimed and self._compiled[number].entry.role in TROUBLE)
        )
        if len(self._memo) >= MEMO_ENTRIES:
            self._memo.clear()
        self._memo[literals] = candidates
        return candidates


def compile_entry(entry: Signature) -> Compiled:
    """Take the phrases of an entry apart, and leave out those that another of its phrases implies."""
    vetoes = [parse_phrase(text, at_least=1, fold=False) for text in entry.unless]
    levels = [_SPELLED_OTHERWISE[level] for level in entry.unless if level in _SPELLED_OTHERWISE]
    return Compiled(
        entry=entry,
        phrases=_without_implied([parse_phrase(text) for text in entry.phrases]),
        plain_vetoes=tuple(veto.anchor for veto in vetoes if len(veto.parts) == 1),
        gapped_vetoes=tuple(veto for veto in vetoes if len(veto.parts) > 1),
        level_veto=re.compile(b"|".join(levels)) if levels else None,
        context=tuple(parse_phrase(text, at_least=1) for text in entry.context),
        text_vetoes=tuple(parse_phrase(text, at_least=1) for text in entry.unless_text),
        skips_programs=entry.names_subject and entry.precedence < MACHINE_FROM,
        line_match=None
        if entry.needs_silence or entry.says_error
        else LineMatch(
            signature=entry.id,
            class_=entry.failure_class,
            role=entry.role,
            phase=entry.phase,
            precedence=entry.precedence,
            certain=entry.certain and not (entry.context or entry.unless_text or entry.class_by_phase),
        ),
    )


def _without_implied(phrases: list[Phrase]) -> tuple[Phrase, ...]:
    """Any phrase is enough, so one that contains a shorter one tells nothing more and only costs time."""
    every = b"\n".join(part for phrase in phrases for part in phrase.parts)
    # Most stand nowhere but in themselves, and one search of all parts at once finds that out.
    plain = {
        phrase.anchor
        for phrase in phrases
        if len(phrase.parts) == 1 and every.find(phrase.anchor, every.find(phrase.anchor) + 1) >= 0
    }
    kept: dict[tuple[bytes, ...], Phrase] = {}
    for phrase in phrases:
        implied = any(
            short in part and (short != part or len(phrase.parts) > 1) for short in plain for part in phrase.parts
        )
        if not implied:
            kept.setdefault(phrase.parts, phrase)
    return tuple(kept.values())


def _is_whole(word: bytes, line: bytes) -> bool:
    """Whether a line in lower case holds the word and nothing else but what a log writes before it.

    The name of an exception without words ends in a colon.
    """
    line = line.strip().removesuffix(b":")
    return line.endswith(word) and _BEFORE.fullmatch(line[: -len(word)]) is not None


def _is_whole_body(word: bytes, raw: bytes) -> bool:
    """Whether the word is all that the program wrote, behind the names and times of a collector."""
    return _body(raw).strip().lower() == word


def _body(raw: bytes) -> bytes:
    """What the program wrote, behind the names and times of a collector."""
    return body_of(raw.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")


def _strength(entry: Signature) -> tuple[int, int]:
    return _ROLE_ORDER[entry.role], entry.precedence
