"""Rule files, help texts and explanations: they name failures that nobody had."""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import has_head, indent_of, is_note, is_warning
from agent.failures.text.streams import body_of

MOST_RULE_LINES = 4
"""The expression of an alert stands no further below its name."""

_COLLECTORS = ("pipeline_stages:", "scrape_configs:")
_EXPRESSION = re.compile(r"\s+(?:expr|for|labels|annotations):")
_YAML = re.compile(r"\s*(?:#|- )|[a-z_]{1,40}:\s*$")
_ASKS_FOR_HELP = re.compile(r"\s{0,8}(?:-\w{1,4},\s{1,8})?--help\b")
_HELP_HEADING = re.compile(r"\s*(?:$|-|\S.{0,80}:\s*$)|[Uu]sage:")
_EXPLAINED = re.compile(
    r"#{2,6} [A-Z]|[\s#>*+-]*(?:\d{1,2}[.)] )?(?:"
    r"(?:If|When|Whenever) (?!.*\b(?:I|my|we|our|me)\b)(?:you|your|users?|it|they|the (?:logs?|server|pod|model))\b.*"
    r"\b(?:sees?|gets?|shows?|hits?|encounters?|finds?|reads?|reports?)\b"
    r"|(?:If|When|Whenever) .* (?:appears?|is (?:seen|shown|reported|printed|raised)|shows up)\b"
    r"|(?:Q|A|Question|Answer): |(?:What|Why|How) (?:is|are|does|do|can|to)\b.*\?\s*$"
    r"|(?i:check|look|search|grep|watch|scan)\b.{0,60}\bfor [\"'`]"
    r"|`[^`]{4,400}`.{0,80}\b(?:means|indicates|is raised|appears|occurs|happens)\b"
    r")"
)
"""A heading, or a sentence that tells what a message means or asks for; in the first person it reports one."""
_PATTERN = re.compile(r"\s*(?:- )?[\"']?(?:pattern|regexp?|expression|match|selector)[\"']?: ?\S")
_SHOWN = re.compile(
    r"\s*(?:[$>] )?(?:echo|printf|e?grep|rg|awk|sed|curl) \S|\+{1,4} (?:\[\[?|[a-z][\w./-]{0,60}) "
    r"|\s*\"(?:text|content)\": \"|[a-z_:][\w:]{2,80}(?:\{[^{}]{0,400}\})? 0(?:\.0)?\s*$"
    r"|\S{1,200}::test_\w.{0,400}\b(?:PASSED|SKIPPED|XFAIL)\b"
)
"""A command that a shell shows, a member of a request or an answer, a counter that is none, a test that passed."""
_OF_ANY = re.compile(
    r"[\s#>*+-]*(?:An?|Any|Each|Every|Many|Most|Some|Such) [a-z][\w -]{1,60} (?:that|which|who|may|can|will|should)\b"
)
"""A sentence about things of a kind, and not about one."""


def is_explained(line: str) -> bool:
    """Whether a line explains or only shows a message, or is the pattern that looks for one; no program's record is."""
    if not (_EXPLAINED.match(line) or _PATTERN.match(line) or _SHOWN.match(line)):
        return False
    return not (has_head(body_of(line)) or is_note(line) or is_warning(line))


def speaks_of_any(line: str) -> bool:
    """Whether a line says what is true of all things of a kind: it tells of no failure with certainty."""
    return _OF_ANY.match(line) is not None


def documents(lines: Sequence[str]) -> frozenset[int]:
    """Positions of the lines of alert rules, of the configuration of log collectors, and of help texts.

    A rule file goes on with lines of YAML, a help text with indented lines, options and headings.
    """
    found: set[int] = set()
    for index, line in enumerate(lines):
        if index in found:
            continue
        if ("- alert:" in line or "_stages:" in line or "_configs:" in line) and _begins_rules(lines, index):
            found.update(_rules_from(lines, index))
        elif "--help" in line and _ASKS_FOR_HELP.match(line):
            found.update(_help_around(lines, index))
    return frozenset(found)


def _begins_rules(lines: Sequence[str], index: int) -> bool:
    said = lines[index].strip()
    if said.startswith("- alert:"):
        return any(map(_EXPRESSION.match, lines[index + 1 : index + 1 + MOST_RULE_LINES]))
    return said in _COLLECTORS


def _rules_from(lines: Sequence[str], index: int) -> range:
    end, depth = index + 1, indent_of(lines[index])
    while end < len(lines) and (not lines[end].strip() or indent_of(lines[end]) > depth or _YAML.match(lines[end])):
        end += 1
    return range(index, end)


def _help_around(lines: Sequence[str], index: int) -> range:
    first, end = index, index + 1
    while first > 0 and _is_of_help(lines[first - 1]):
        first -= 1
    while end < len(lines) and _is_of_help(lines[end]):
        end += 1
    return range(first, end)


def _is_of_help(line: str) -> bool:
    return line[:1] in {" ", "\t"} or _HELP_HEADING.match(line) is not None
