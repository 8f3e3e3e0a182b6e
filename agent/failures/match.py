"""The matcher: which signatures stand in a text, and which of them is the first cause."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent.failures.finding import Finding, LineMatch
from agent.failures.phrase import Phrase, parse_phrase
from agent.failures.prefilter import Prefilter
from agent.failures.signature import Role, Signature
from agent.failures.text import clean, split_lines
from agent.failures.verdict import Sighting, judge

MEMO_ENTRIES = 4096
"""Distinct combinations of literals remembered; a hostile log can make no more."""

_ROLE_ORDER = {role: -position for position, role in enumerate(Role)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """An entry with its phrases taken apart."""

    entry: Signature
    phrases: tuple[Phrase, ...]
    vetoes: tuple[Phrase, ...]
    context: tuple[Phrase, ...]
    text_vetoes: tuple[Phrase, ...]
    line_match: LineMatch


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An entry that may stand in a line, and what must still be checked there."""

    compiled: Compiled
    unconfirmed: tuple[Phrase, ...]

    def stands_in(self, line: bytes, raw: bytes) -> bool:
        """Whether the entry stands in the line; an empty ``unconfirmed`` says that a phrase does already."""
        if self.unconfirmed and not any(phrase.stands_in(line) for phrase in self.unconfirmed):
            return False
        return not any(veto.stands_in(raw) for veto in self.compiled.vetoes)


class Matcher:
    """The compiled catalogue; make it with :func:`compile_catalogue`. Its memory does not change what it says.

    Args:
        entries: Validated signatures with unique ids.
    """

    def __init__(self, entries: Sequence[Signature]) -> None:
        self.compiled = tuple(_compile(entry) for entry in entries)
        anchors: dict[bytes, list[tuple[int, Phrase]]] = {}
        for number, compiled in enumerate(self.compiled):
            for phrase in compiled.phrases:
                anchors.setdefault(phrase.anchor, []).append((number, phrase))
        self._owners = list(anchors.values())
        self._prefilter = Prefilter(list(anchors))
        self._memo: dict[tuple[int, ...], tuple[Candidate, ...]] = {}

    def scan(self, lines: Iterable[str]) -> Iterator[tuple[int, LineMatch]]:
        """Yield (index, what the line is) for every line that the catalogue knows, in order.

        Linear in the input, memory bounded by one chunk; fit for storms. Colours are not removed here.
        Signatures that need context from other lines are reported by their own line alone, not certain.
        """
        for index, literals, line, raw in self._prefilter.scan(lines):
            for candidate in self._memo.get(literals) or self._candidates(literals):
                if candidate.stands_in(line, raw):
                    yield index, candidate.compiled.line_match
                    break

    def line(self, text: str) -> LineMatch | None:
        """What one log line is by itself; None if the catalogue does not know it."""
        return next((match for _, match in self.scan([clean(text).replace("\n", " ")])), None)

    def classify(self, text: str, *, whole_log: bool, platform: str | None) -> Finding:
        """The first cause in a text.

        Args:
            text: Log text already taken out of its envelope, one line or many.
            whole_log: The text is the instance's own log from its start; without it a class that depends
                on the phase stays provisional.
            platform: cloud_run, kubernetes, tpu_vm, container_apps, ec2, host, or None if not known.

        Returns:
            A finding; ``unknown`` with the most telling lines where the catalogue knows nothing.
        """
        lines = split_lines(text)
        found: list[tuple[int, Compiled]] = [
            (index, candidate.compiled)
            for index, literals, line, raw in self._prefilter.scan(lines)
            for candidate in self._memo.get(literals) or self._candidates(literals)
            if candidate.stands_in(line, raw)
        ]
        lowered = "\n".join(lines).encode("utf-8", "surrogatepass").lower()
        valid: dict[str, bool] = {}
        for _, compiled in found:
            if compiled.entry.id not in valid:
                valid[compiled.entry.id] = _fits_text(compiled, lowered)
        sightings = [
            Sighting(index=index, signature=compiled.entry) for index, compiled in found if valid[compiled.entry.id]
        ]
        return judge(lines, sightings, whole_log=whole_log, platform=platform)

    def _candidates(self, literals: tuple[int, ...]) -> tuple[Candidate, ...]:
        """Entries that may stand in a line with these literals, strongest first."""
        phrases: dict[int, list[Phrase]] = {}
        for literal in dict.fromkeys(literals):
            for number, phrase in self._owners[literal]:
                phrases.setdefault(number, []).append(phrase)
        candidates = [
            Candidate(
                compiled=self.compiled[number],
                unconfirmed=() if any(len(phrase.parts) == 1 for phrase in found) else tuple(found),
            )
            for number, found in phrases.items()
        ]
        candidates.sort(key=lambda candidate: _strength(candidate.compiled.entry), reverse=True)
        if len(self._memo) >= MEMO_ENTRIES:
            self._memo.clear()
        self._memo[literals] = tuple(candidates)
        return self._memo[literals]


def compile_catalogue(entries: Iterable[Signature]) -> Matcher:
    """Build the matcher; takes some milliseconds, do it once per process."""
    return Matcher(tuple(entries))


def _compile(entry: Signature) -> Compiled:
    return Compiled(
        entry=entry,
        phrases=tuple(parse_phrase(text) for text in entry.phrases),
        vetoes=tuple(parse_phrase(text, at_least=1, fold=False) for text in entry.unless),
        context=tuple(parse_phrase(text, at_least=1) for text in entry.context),
        text_vetoes=tuple(parse_phrase(text, at_least=1) for text in entry.unless_text),
        line_match=LineMatch(
            signature=entry.id,
            class_=entry.failure_class,
            role=entry.role,
            phase=entry.phase,
            precedence=entry.precedence,
            certain=entry.certain and not entry.context and not entry.unless_text and not entry.class_by_phase,
        ),
    )


def _strength(entry: Signature) -> tuple[int, int]:
    return _ROLE_ORDER[entry.role], entry.precedence


def _fits_text(compiled: Compiled, text: bytes) -> bool:
    if compiled.context and not any(phrase.stands_in(text) for phrase in compiled.context):
        return False
    return not any(phrase.stands_in(text) for phrase in compiled.text_vetoes)
