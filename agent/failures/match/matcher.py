"""The matcher: which signatures stand in a text, and which of them is the first cause."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final

from agent.failures.finding import Finding, LineMatch
from agent.failures.first_cause import judge
from agent.failures.match.index import Compiled, Index, compile_entry
from agent.failures.signature import PLAIN_TROUBLE, TROUBLE, FailureClass, Proof, Sighting, Signature
from agent.failures.text.client_text import without_client_words, without_prompts
from agent.failures.text.log_text import clean, is_error_line, split_lines, unwrapped
from agent.failures.text.no_evidence import without_arguments
from agent.failures.text.rejoined import rejoined
from agent.failures.text.relayed import unrelayed
from agent.failures.text.streams import body_of, server_of
from agent.failures.text.words import StatusWords, Words

MEMO_TEXTS: Final = 256
"""Texts whose finding is remembered: a storm repeats one line."""

MOST_WRAPPED: Final = 200
"""Lines of a text whose sentences a terminal or a quote may have broken; a log that a program kept has none."""

MEMO_CHARS: Final = 2048
"""Longer texts are read each time, so that the memory is bounded."""

NEAR: Final = 16
"""Lines among which the next one of the same server is looked for."""


class Matcher:
    """The compiled catalogue; make it with :func:`compile_catalogue`.

    It remembers what combinations of literals mean, and the findings of the last short texts; neither ever changes
    an answer.

    Args:
        entries: Validated signatures with unique ids, at least one of them a cause or consequence.
        words: Those by which any program tells how it is; without them nothing is known of what no entry knows.
    """

    def __init__(self, entries: Sequence[Signature], words: Iterable[Words]) -> None:
        self._words = StatusWords(words)
        self.compiled = tuple(compile_entry(entry) for entry in entries)
        self._claims = [compiled for compiled in self.compiled if compiled.entry.claims_line]
        self._all = Index(self.compiled, claims=self._claims)
        self._lately = lru_cache(maxsize=MEMO_TEXTS)(self._classify)

    @cached_property
    def _trouble(self) -> Index:
        failing = [compiled for compiled in self.compiled if compiled.entry.role in PLAIN_TROUBLE]
        return Index(failing, claims=self._claims)

    def scan(self, lines: Iterable[str]) -> Iterator[tuple[int, LineMatch]]:
        """Yield (index, what the line is) for every line that the catalogue knows, in order.

        Linear in the input, memory bounded by one chunk of lines. Colours are not removed here. Signatures
        that need other lines are reported by their own line alone, with ``certain`` False; those that conclude from
        what other lines do not say are not reported.
        """
        return self._all.strongest(lines)

    def troubles(self, lines: Iterable[str]) -> Iterator[tuple[int, LineMatch]]:
        """Yield (index, match) for lines that are a cause or a consequence: :meth:`scan` without the rest, faster.

        A line that :meth:`scan` calls cause or consequence is yielded with the same match; no other line is.
        """
        return self._trouble.strongest(lines)

    def line(self, text: str) -> LineMatch | None:
        """What one log line is by itself; None if the catalogue does not know it."""
        return next((match for _, match in self.scan([clean(text).replace("\n", " ")])), None)

    def proving(self, proof: Proof) -> frozenset[str]:
        """Ids of the entries that carry the proof."""
        return frozenset(compiled.entry.id for compiled in self.compiled if compiled.entry.proof is proof)

    def classify(
        self, text: str, *, whole_log: bool, platform: str | None, servers: tuple[str, ...] | None = None
    ) -> Finding:
        """The first cause in a text.

        Args:
            text: Log text already taken out of its envelope, one line or many.
            whole_log: The text is the instance's own log from its start; without it a class that depends
                on the phase stays provisional.
            platform: cloud_run, kubernetes, tpu_vm, container_apps, ec2, host, or None if not known.
            servers: Which instance, pod or container wrote each line, where the caller knows; empty for a line of
                nobody. Besides it the names count that collectors write before a line.

        Returns:
            A finding; ``unknown`` with the most telling lines where the catalogue knows nothing. It may be shared
            with others who asked the same.
        """
        return (self._lately if len(text) <= MEMO_CHARS else self._classify)(text, whole_log, platform, servers)

    def _classify(
        self,
        text: str,
        whole_log: bool,  # noqa: FBT001 - a memo's key
        platform: str | None,
        servers: tuple[str, ...] | None = None,
    ) -> Finding:
        lines = [without_client_words(line) for line in without_prompts(unrelayed(split_lines(text)))]
        finding = self._judged(lines, whole_log, platform, servers)
        if len(lines) > MOST_WRAPPED or not (finding.class_ is FailureClass.UNKNOWN or _is_doubtful(finding)):
            return finding
        for whole in (unwrapped(lines), rejoined(lines)):
            again = finding if whole == lines else self._judged(whole, whole_log, platform, servers)
            if not (again.class_ is FailureClass.UNKNOWN or again.benign or again.hint or again.consequence):
                return again
        return finding

    def _judged(
        self,
        lines: list[str],
        whole_log: bool,  # noqa: FBT001 - passed on
        platform: str | None,
        servers: tuple[str, ...] | None,
    ) -> Finding:
        found = [(at, one) for at, one in self._all.sightings(lines) if _is_said(one, lines[at])]
        lowered = "\n".join(lines).encode("utf-8", "surrogatepass").lower()
        fits: dict[str, bool] = {}
        for _, compiled in found:
            if compiled.entry.id not in fits:
                fits[compiled.entry.id] = compiled.fits_text(lowered)
        found = [(at, one) for at, one in found if fits[one.entry.id] and _has_context(one, lines, at)]
        sightings = [_sighting(index, compiled) for index, compiled in found]
        return judge(lines, sightings, self._words, whole_log=whole_log, platform=platform, servers=servers or ())


def _is_doubtful(finding: Finding) -> bool:
    """Whether a text is harmless by the word of one line alone, whose end may stand in the next."""
    return finding.benign and not finding.certain


def compile_catalogue(entries: Iterable[Signature], words: Iterable[Words]) -> Matcher:
    """Build the matcher; takes some milliseconds, do it once per process."""
    return Matcher(tuple(entries), words)


def _is_said(compiled: Compiled, line: str) -> bool:
    """Whether a line says what an entry of trouble looks for: not among arguments, as an error if it wants one."""
    if compiled.entry.says_error and not is_error_line(body_of(line)):
        return False
    if compiled.entry.role not in TROUBLE or (said := without_arguments(line)) == line:
        return True
    raw = said.encode("utf-8", "surrogatepass")
    return compiled.stands_in(raw.lower(), raw, compiled.phrases)


def _has_context(compiled: Compiled, lines: Sequence[str], index: int) -> bool:
    """Whether the context of an entry that wants it below its line is in the next one of the same server."""
    if not compiled.entry.below:
        return True
    line, near = lines[index], lines[index + 1 : index + NEAR]
    below = next((other for other in near if server_of(other) == server_of(line)), "")
    return compiled.fits_text(f"{line}\n{below}".encode("utf-8", "surrogatepass").lower())


def _sighting(index: int, compiled: Compiled) -> Sighting:
    return Sighting(index=index, signature=compiled.entry)
