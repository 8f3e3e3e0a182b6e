"""Every ``unless`` of the catalogue is there for a look-alike: a line with the entry's phrase that is not its trouble."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.catalogue.load_failures import FailureCatalogue
from agent.failures.match.matcher import Matcher, compile_catalogue
from agent.failures.match.phrase import parse_phrase
from agent.failures.signature import WILDCARD, Signature
from agent.failures.text.entry_text import log_lines
from agent.failures.text.log_text import split_lines
from tests.agent.failures.log_changes import HEALTHY_START
from tests.outside import shared

HERE = Path(__file__).parent
CORPORA = ("incidents-dev.jsonl", "incidents-dev-2.jsonl")
LEVELS = frozenset({"TRACE", "DEBUG", "INFO", "WARNING", "WARN", "ERROR", "FATAL", "CRITICAL"})
"""A veto of these needs no text: the look-alike is any line that a logger writes at that level."""

LOOK_ALIKES = json.loads((HERE / "look_alikes.json").read_text(encoding="utf-8"))
"""Lines in our own words that have a phrase of an entry and are not its trouble; the entry has one veto for each."""

DECEPTIVE = json.loads((HERE / "deceptive_lines.json").read_text(encoding="utf-8"))
"""Settings, counters, retries, other programs and documents that use a failure's words; no phrase stands in them."""


def lines_of(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for part in log_lines(text) for line in split_lines(part)]


def needed(entry: Signature, lines: list[tuple[bytes, bytes]]) -> set[str]:
    """The vetoes of an entry that keep it away from a line with one of its phrases."""
    phrases = [parse_phrase(text) for text in entry.phrases]
    alike = [raw for raw, low in lines if any(p.anchor in low and p.stands_in(low) for p in phrases)]
    return {
        text for text in entry.unless if any(parse_phrase(text, at_least=1, fold=False).stands_in(r) for r in alike)
    }


@pytest.mark.slow
@pytest.mark.shared
def test_every_veto_has_the_look_alike_that_it_is_there_for(catalogue: FailureCatalogue) -> None:
    """A veto without a text hides failures for nothing."""
    texts = [
        json.loads(line)["log"] for name in CORPORA for line in shared("data", name).read_text("utf-8").splitlines()
    ]
    texts += [row["text"] for row in json.loads((HERE / "texts.json").read_text(encoding="utf-8"))]
    texts += ["\n".join(row["lines"]) for row in json.loads((HERE / "composites.json").read_text(encoding="utf-8"))]
    texts += [row["line"] for row in LOOK_ALIKES]
    lines = [
        (line.encode("utf-8", "surrogatepass"), line.lower().encode("utf-8", "surrogatepass"))
        for line in lines_of(texts)
    ]
    textless: dict[str, list[str]] = defaultdict(list)
    for entry in catalogue.signatures:
        found = needed(entry, lines) if entry.unless else set()
        textless[entry.id] += [text for text in entry.unless if text not in found and text not in LEVELS]
    assert {name: sorted(vetoes) for name, vetoes in textless.items() if vetoes} == {}


@pytest.mark.slow
def test_a_look_alike_is_right_with_its_veto_and_wrong_without(catalogue: FailureCatalogue, matcher: Matcher) -> None:
    """Class, first fix or role; a line has one veto of its entry, so that without all of them it is without that."""
    rows = defaultdict(list)
    for row in LOOK_ALIKES:
        rows[row["entry"]].append(row)
    for name, alike in rows.items():
        entries = {entry.id: entry for entry in catalogue.signatures}
        vetoes = [parse_phrase(text, at_least=1, fold=False) for text in entries[name].unless]
        entries[name] = replace(entries[name], unless=())
        bare = compile_catalogue(entries.values(), catalogue.words)
        for row in alike:
            raw = row["line"].encode()
            assert sum(veto.stands_in(raw) for veto in vetoes) == 1, row
            assert (told := what_is_said(matcher, row["line"]))[0] == row["class"], row
            assert told != what_is_said(bare, row["line"]), row


def what_is_said(matcher: Matcher, line: str) -> tuple[str, tuple[str, ...], str | None]:
    """Class and first fix of a text of one line, and the role of the line."""
    found, alone = matcher.classify(line, whole_log=True, platform=None), matcher.line(line)
    return found.class_, found.fix_actions[:1], alone.role if alone is not None else None


def test_a_line_of_a_vetoed_level_is_no_sighting(catalogue: FailureCatalogue, matcher: Matcher) -> None:
    """What a logger wrote as a note is none of the entries that say so, whichever of their phrases it holds."""
    for entry in catalogue.signatures:
        for level in LEVELS.intersection(entry.unless):
            said = entry.phrases[0].replace(WILDCARD, " ")
            found = matcher.line(f"{level} 05-06 07:08:09 [lamp.py:3] {said}")
            assert found is None or found.signature != entry.id, (entry.id, level)


def test_no_veto_says_what_a_shorter_one_of_its_entry_says(catalogue: FailureCatalogue) -> None:
    """The longer one could be deleted and nothing would change."""
    for entry in catalogue.signatures:
        plain = [text for text in entry.unless if WILDCARD not in text]
        assert [text for text in entry.unless if any(one != text and one in text for one in plain)] == [], entry.id


@pytest.mark.parametrize("line", DECEPTIVE)
def test_words_of_a_failure_are_not_enough_for_one(matcher: Matcher, line: str) -> None:
    for above in ([], HEALTHY_START):
        found = matcher.classify("\n".join([*above, line]), whole_log=True, platform=None)
        assert found.benign or found.class_ == "unknown", found
