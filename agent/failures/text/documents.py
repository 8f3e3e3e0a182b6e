"""Rule files, help texts and programs name failures that nobody had; a line that only shows one is not certain."""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import TRACEBACK, has_head, indent_of, is_error_line, is_note, is_warning
from agent.failures.text.streams import body_of

MOST_RULE_LINES = 4
"""The expression of an alert stands no further below its name."""

MOST_HEADING_LINES = 3
"""Blank lines and the heading between two groups of options."""

MOST_OPEN_LINES = 60
"""A program closes a bracket or quotes within so many lines; a log that only seems to open one does not."""

LEAST_STATEMENTS = 4
"""Fewer statements in a row may be what a traceback or a message quotes."""

_COLLECTORS = ("pipeline_stages:", "scrape_configs:")
_EXPRESSION = re.compile(r"\s+(?:expr|for|labels|annotations):")
_NEXT_RULE = re.compile(r"\s*(?:#|- (?:alert|record|name|job_name):)")
_DESCRIBED = re.compile(r"\s*[A-Z][A-Za-z ]{1,30}:\s{2,}\S")
"""A field as ``kubectl describe`` writes it."""
_OPTION = re.compile(r"\s{0,12}-{1,2}[A-Za-z]")
_ASKS_FOR_HELP = re.compile(r"\s{0,8}(?:-\w{1,4},\s{1,8})?--help\s{2,40}\S")
_HEADING = re.compile(r"\s*$|\S.{0,80}:\s*$")
_PROGRAM_WORDS = ("def ", "class ", "import ")
_BEGINS_PROGRAM = re.compile(r"\s*(?:(?:async )?def \w+\(|class \w+[(:]|import \w|from [\w.]+ import )")
_STATEMENT = re.compile(
    r"\s*(?:(?:async )?def \w+\(|class \w+[(:]|import \w|from [\w.]+ import |@\w"
    r"|(?:if|elif|for|while|with|except|async)\b.*:\s*(?:#.*)?$|(?:else|try|finally|except):|return\b|raise \w|assert "
    r"|pass$|break$|continue$|(?:del|global|nonlocal|yield|await) \w"
    r"|(?![\w.]{0,80}(?:Error|Exception):)[\w.]+(?:\[[^\]]{0,80}\])?(?:: [\w.\[\], ]{1,80})? [-+*/]?= \S"
    r"|[\w.]+\((?!\):).*[()\[\]{,]\s*(?:#.*)?$)"
)
"""A statement of a program in Python, as far as one line shows."""
_OPEN, _CLOSED = re.compile(r"[(\[{]"), re.compile(r"[)\]}]")
_GOES_ON = re.compile(r"\s*(?:$|#|[)\]}]|[rf]{0,2}(?:\"\"\"|'''))")
_QUOTES = re.compile("\"\"\"|'''")
_DESCRIBES = re.compile(
    r"[\s#>*+-]*(?:\d{1,2}[.)] )?(?:"
    r"(?:If|When|Whenever) .*\b(?:sees?|gets?|shows?|hits?|encounters?|finds?|reads?|reports?|appears?|raised|seen)\b"
    r"|(?:Q|A|Question|Answer): |(?i:check|look|search|grep|watch|scan)\b.{0,60}\bfor [\"'`]"
    r"|`[^`]{4,400}`.{0,80}\b(?:means|indicates)\b"
    r"|(?:An?|Any|Each|Every|Many|Most|Some|Such) [a-z][\w -]{1,60} (?:that|which|who|may|can|will|should)\b"
    r")"
    r"|\+{1,4} \S|(?:\$|[\w.-]{1,60}@[\w.-]{1,60}:\S{0,80}[#$]) \S"
    r"|[a-z_:][\w:]{2,80}(?:\{[^{}]{0,400}\})? 0(?:\.0{1,6})?(?:e\+00)?(?: \d{10,13})?\s*$"
    r"|\S{1,200}::test_\w.{0,400}\b(?:PASSED|SKIPPED|XFAIL)\b"
)
"""A sentence that explains a message or tells of things of a kind; a command, a counter of none, a test that passed."""


def may_only_describe(line: str) -> bool:
    """Whether a line may explain or only show a message: it reports no failure with certainty.

    A record of a program is none.
    """
    body = body_of(line)
    return _DESCRIBES.match(body) is not None and not (has_head(body) or is_note(line) or is_warning(line))


def documents(lines: Sequence[str]) -> frozenset[int]:
    """Positions of the lines of alert rules, of the configuration of log collectors, of help texts and of programs."""
    found: set[int] = set()
    read = 0
    for index, line in enumerate(lines):
        if index in found:
            continue
        if ("- alert:" in line or "_stages:" in line or "_configs:" in line) and _begins_rules(lines, index):
            found.update(_rules_from(lines, index))
        elif "--help" in line and _ASKS_FOR_HELP.match(body_of(line)):
            found.update(_help_around(lines, index))
        elif index >= read and any(word in line for word in _PROGRAM_WORDS) and _BEGINS_PROGRAM.match(body_of(line)):
            end, read = _program_from(lines, index)
            found.update(range(index, end))
    return frozenset(found)


def _program_from(lines: Sequence[str], index: int) -> tuple[int, int]:
    """Where a program in Python ends, as somebody who asks shows it, and up to where it was sought.

    It ends where a line is no statement and stands within no brackets or quotes that the program closes, or where it is
    a record of a log or part of a traceback; where it begins if there is none, as below a frame of a traceback.
    """
    end, whole, statements, depth, quoted = index, index, 0, 0, False
    if index and 'File "' in lines[index - 1]:
        return index, index
    while end < min(len(lines), whole + MOST_OPEN_LINES) and not _is_of_a_log(line := body_of(lines[end])):
        if not quoted and _STATEMENT.match(line):
            statements += 1
        elif not (quoted or _GOES_ON.match(line) or (depth > 0 and indent_of(line))):
            break
        if not quoted:
            depth = max(0, depth + len(_OPEN.findall(line)) - len(_CLOSED.findall(line)))
        quoted = quoted != (len(_QUOTES.findall(line)) % 2 == 1)
        end += 1
        whole = whole if quoted or depth else end
    return whole if statements >= LEAST_STATEMENTS else index, end


def _is_of_a_log(line: str) -> bool:
    return 'File "' in line or TRACEBACK in line or has_head(line) or is_note(line) or is_error_line(line)


def _begins_rules(lines: Sequence[str], index: int) -> bool:
    said = body_of(lines[index]).strip()
    if said.startswith("- alert:"):
        return any(_EXPRESSION.match(body_of(line)) for line in lines[index + 1 : index + 1 + MOST_RULE_LINES])
    return said in _COLLECTORS


def _rules_from(lines: Sequence[str], index: int) -> range:
    """A rule and those below it, as far as lines stand further in; a blank line or another field ends them."""
    end, depth = index + 1, indent_of(body_of(lines[index]))
    while end < len(lines):
        body = body_of(lines[end])
        if not (_NEXT_RULE.match(body) or (indent_of(body) > depth and body.strip() and not _DESCRIBED.match(body))):
            break
        end += 1
    return range(index, end)


def _help_around(lines: Sequence[str], index: int) -> set[int]:
    """The options around ``--help``, with what is said of each further in; empty where it is the only one."""
    depth = indent_of(body_of(lines[index]))
    found = {
        index,
        *_options(lines, range(index - 1, -1, -1), depth),
        *_options(lines, range(index + 1, len(lines)), depth),
    }
    several = sum(_OPTION.match(body_of(lines[at])) is not None for at in found) > 1
    return found if several else set()


def _options(lines: Sequence[str], positions: range, depth: int) -> set[int]:
    found: set[int] = set()
    between = 0
    for at in positions:
        body = body_of(lines[at])
        if _OPTION.match(body) or (between == 0 and body.strip() and indent_of(body) >= depth + 4):
            found.add(at)
            between = 0
        elif not _HEADING.match(body) or (between := between + 1) > MOST_HEADING_LINES:
            break
    return found
