"""The matcher: which signatures stand in a text, and which of them is the first cause."""

from collections.abc import Iterable, Iterator, Sequence

from agent.failures.finding import Finding, LineMatch
from agent.failures.phrase import parse_phrase
from agent.failures.prefilter import Prefilter
from agent.failures.signature import Role, Signature
from agent.failures.text import clean, split_lines
from agent.failures.verdict import Sighting, judge

MEMO_ENTRIES = 4096
_ROLE_ORDER = {Role.CAUSE: 3, Role.CONSEQUENCE: 2, Role.BENIGN: 1, Role.PHASE: 0}


class Matcher:
    """The compiled catalogue; make it with :func:`compile_catalogue`. It holds no state between calls.

    Args:
        entries: Validated signatures with unique ids.
    """

    def __init__(self, entries: Sequence[Signature]) -> None:
        self.entries = tuple(entries)
        texts: dict[str, int] = {}
        self._asserts: list[list[Signature]] = []
        self._vetoes: list[set[str]] = []
        self._context: dict[str, frozenset[int]] = {}
        self._unless_text: dict[str, frozenset[int]] = {}
        for entry in self.entries:
            own = [self._number(texts, phrase) for phrase in entry.phrases]
            for number in dict.fromkeys(own):
                self._asserts[number].append(entry)
            for phrase in entry.unless:
                self._vetoes[self._number(texts, phrase)].add(entry.id)
            self._context[entry.id] = frozenset(self._number(texts, phrase) for phrase in entry.context)
            self._unless_text[entry.id] = frozenset(self._number(texts, phrase) for phrase in entry.unless_text)
        self._prefilter = Prefilter([parse_phrase(text) for text in texts])
        self._lines = {
            entry.id: LineMatch(
                signature=entry.id,
                class_=entry.failure_class,
                role=entry.role,
                phase=entry.phase,
                precedence=entry.precedence,
                certain=entry.certain and not entry.context and not entry.class_by_phase,
            )
            for entry in self.entries
        }

    def _number(self, texts: dict[str, int], phrase: str) -> int:
        number = texts.setdefault(phrase.lower(), len(texts))
        if number == len(self._asserts):
            self._asserts.append([])
            self._vetoes.append(set())
        return number

    def scan(self, lines: Iterable[str]) -> Iterator[tuple[int, LineMatch]]:
        """Yield (index, what the line is) for every line that the catalogue knows, in order.

        Linear in the input, memory bounded by one chunk; fit for storms. Signatures that need context
        from other lines are reported by their own line alone, with ``certain`` False.
        """
        memo: dict[tuple[int, ...], LineMatch | None] = {}
        for index, phrases in self._prefilter.scan(lines):
            try:
                match = memo[phrases]
            except KeyError:
                if len(memo) >= MEMO_ENTRIES:
                    memo.clear()
                match = memo[phrases] = self._strongest(phrases)
            if match is not None:
                yield index, match

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
        sightings: list[Sighting] = []
        present: set[int] = set()
        for index, phrases in self._prefilter.scan(lines):
            present.update(phrases)
            sightings.extend(Sighting(index=index, signature=entry) for entry in self._entries_of(phrases))
        valid = [
            sighting
            for sighting in sightings
            if (not self._context[sighting.signature.id] or self._context[sighting.signature.id] & present)
            and not self._unless_text[sighting.signature.id] & present
        ]
        return judge(lines, valid, whole_log=whole_log, platform=platform)

    def _entries_of(self, phrases: tuple[int, ...]) -> list[Signature]:
        vetoed = {name for number in phrases for name in self._vetoes[number]}
        found: dict[str, Signature] = {}
        for number in phrases:
            for entry in self._asserts[number]:
                if entry.id not in vetoed:
                    found.setdefault(entry.id, entry)
        return list(found.values())

    def _strongest(self, phrases: tuple[int, ...]) -> LineMatch | None:
        entries = self._entries_of(phrases)
        if not entries:
            return None
        best = max(entries, key=lambda entry: (_ROLE_ORDER[entry.role], entry.precedence))
        return self._lines[best.id]


def compile_catalogue(entries: Iterable[Signature]) -> Matcher:
    """Build the matcher; takes some milliseconds, do it once per process."""
    return Matcher(tuple(entries))
