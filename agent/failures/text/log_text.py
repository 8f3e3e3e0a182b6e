"""Log text as lines: terminal colours and envelopes gone, and which lines tell most when nothing is known."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import re2

from agent.failures.text.streams import body_of, server_of

MAX_LINE_CHARS = 16_384
"""Longer lines are cut: no failure text known to us needs more, and a hostile line costs no more than this."""

LONGEST_WARNING = 12
"""So many lines below its head a warning has at most, with those of other servers between them."""

_ANSI = re.compile(
    r"\x1b\[[0-9;?]{0,16}[ -/]?[@-~]|\x1b\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|[\x00\x07\x08]"
)
_CARET = re.compile(r"(?:\^\[|\\u001b|\\x1b|\\033|␛)\[[0-9;]{0,16}m")

_EXCEPTION = re.compile(
    r"(?:^|[\s:(\]])([A-Za-z_][\w.]{0,80}(?:Error|Exception|Interrupt|Exit|Failure|Timeout))\b:?\s*(\S.{0,400})?"
)
_LOUD = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|PANIC|EMERG|SEVERE|[Ff]atal|[Pp]anic\w*|[Ff]ailed|[Ff]ailure|[Cc]annot|[Uu]nable to"
    r"|Traceback|[Uu]nhandled|terminate called"
    r"|[Dd]enied|[Rr]efused|[Dd]ied|[Kk]ill(?:ed|ing|s)|[Cc]rash\w*|[Aa]bort\w*|[Rr]eset(?! to\b)"
    r"|[Tt]imed? ?out|[Nn]ot found|[Ee]xceeded|[Ii]nvalid)\b"
)
_NONE = re.compile(
    r"\b(?:[Ff]ail(?:ed|ures?)|[Ee]rrors?|[Aa]borted|[Rr]efused|[Tt]imeouts?"
    r"|[Ii]nvalid(?= [a-z])|(?<![\w:] )[Ii]nvalid(?! [a-z]))"
    r"(?: (?:(?![a-z]{0,20}(?:ss|is|status|bus|alias|bias)\b)[a-z]{1,20}s|count|total|rate|code))?"
    r"\s{0,40}[:=]\s{0,40}0(?:\.0{1,6})?(?![.\dx/]|\s{1,4}(?:out )?of\b)"
)
"""A count of failures that is none; ``0 of 2`` counts what came through, ``invalid rank: 0`` names one."""
_AVOIDED = re.compile(
    r"#failure=\d|\btimeout=\d|^\s{0,3}[-+~] [\w.-]{1,80}==\S{1,80}\s*$"
    r"|\b[Tt]imeout(?:[=:] ?| (?:is )?set to:? ?)\d[\d.]{0,20} ?(?:ms|s|sec|seconds|min|minutes)?\s{0,9}$"
    r"|\b(?:avoids?|avoiding|prevents?|preventing)(?: \w{1,20}){0,4} (?:failures?|errors?|crash\w{0,4})\b"
)
_QUIET = re.compile(
    r"\b(?:INFO|DEBUG|TRACE|WARNING|WARN|[Ii]gnor(?:e|ed|ing))\b|^[IWD]\d{4} "
    r"|(?:User|Future|Deprecation)Warning"
    r"|\.py:\d{1,7}: (?:\w{1,40}Warning|DeprecationError): |\blevel=warn"
)
_ADVISED_LEVEL = re.compile(
    r"\b(?:[A-Z]{1,20}_[A-Z_]{1,60}=|log(?:ging)?[ _-]level[= ]{1,3})['\"]?(?:INFO|DEBUG|TRACE|WARN(?:ING)?)\b"
)
"""A setting that an error advises for the next run: ``NCCL_DEBUG=INFO`` says nothing of the line's own level."""
_MESSAGE = re.compile(r"\b[a-z]{2,20} [a-z]{2,20}\b|(?:Error|Exception): ")
"""Where a message begins: a level before it, as structured loggers write it, is the line's own."""
_NOTE = re.compile(
    r"(?:^|[\s(<\[\"'=])(?:INFO|DEBUG|TRACE|NOTICE)\b|\] LOG:  |^[ID]\d{4} "
    r"|(?i:level|lvl|severity|levelname)[\"']?\s?[=:]\s?[\"']?(?:info|debug|trace)\b"
)
_NOTE_WORD = re.compile(r"(?:^|\s)[ID]\d|INFO|DEBUG|TRACE|NOTICE|LOG:  |info|debug|trace|notice")
_SMALL_NOTE = re.compile(
    r"(?P<before>(?:\s{0,4}(?:\[(?!\s?(?:info|debug|trace)\b)[^\[\]]{0,60}\]|\((?!info|debug|trace)[^()]{1,80}\)"
    r"|[\d/-]{8,10}[T ]|\d\d:\d\d[\d:.,+Z-]{0,24}(?=\s)|[A-Za-z][\w.-]{0,30}\[\d{1,10}\]:)){0,6})[\s|-]{0,5}"
    r"(?:[\[(]\s?(?:info|debug|trace|notice)\s{0,8}[\])]|(?:info|debug|trace)(?:\s{0,4}[:|]|\t|\s(?P<words>\s{0,8}\S)))"
)
"""In small letters ``info`` is a word of messages as well: it counts at the head, and before words behind a time."""
_CLOCK = re.compile(r"\d:\d\d")
_SHORT_LEVEL = re.compile(
    r"(?:\([\w ,.=+-]{1,60}\) )?(?:\[rank\d{1,4}\]:(?=[IDW]\d{4} ))?"
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?(?:\d\d:\d\d:\d\d[\d.,Z+:]{0,16} )?"
    r"(?:(INF|DBG|TRC|WRN|ERR|FTL|PNC) |([IDWEFC]) \d{1,8} \d|\d{1,6}\.\d\d\.\d{3}\.\d{3} ([IDWE]) "
    r"|([IDWEF])\d{4} \d\d:)"
)
"""Levels behind a time, or where that was taken off: zerolog's three letters, the one of Ray's C++, llama.cpp and klog.

In the middle of a line it is another's line that is quoted.
"""
_MAY_BE_SHORT = re.compile(
    r"\b(?:INF|DBG|TRC|WRN|ERR|FTL|PNC) |\b[IDWEFC] \d{1,8} \d|\.\d{3} [IDWE] |[IDWEF]\d{4} \d\d:"
)
_FATAL_LEVEL = re.compile(r"(?:^|[\s(\[\"'=])(?:CRITICAL|FATAL|PANIC|EMERG)\b")
_FIELD_LEVEL = (
    r"^[EF]\d{4} |(?:^|\s)(?:level|severity)=\"?(?:error|fatal|critical|panic)\b"
    r"|(?:^\{|, ?)\"(?:level|severity)\": ?\"(?:error|fatal|critical|panic)\b"
)
_ERROR_FIELD = re.compile(_FIELD_LEVEL)
_ERROR_LEVEL = re.compile(r"(?:^|[\s(\[\"'=])(?:ERROR|CRITICAL|FATAL|PANIC|EMERG|SEVERE)\b|" + _FIELD_LEVEL)
_WARNING = re.compile(
    r"\b(?:WARNING|WARN)\b|^W\d{4} |\[W\d{3,4} \d\d:|\.py:\d{1,7}: (?:\w{1,40}Warning|DeprecationError): |\blevel=warn"
    r"|\(function [^()]{1,80}(?:\(\))?\)\s*$"
)
"""PyTorch's C++ ends a warning with the name of the function that gave it, also where it has several lines."""
_WARNED_ABOVE = re.compile(r"\.py:\d{1,7}: \w{1,40}Warning:\s*$")
_GAVE_UP = re.compile(
    r"\b(?:dead|died|crashed)\b|\b(?P<all>\d{1,4}) ?/ ?(?P=all)\b.{0,20}\bfailed"
    r"|\bfailed.{0,20}\b(?P<each>\d{1,4}) ?/ ?(?P=each)\b",
    re.IGNORECASE,
)
_FRAME = re.compile(r'^\s*(?:\([\w ]{1,40}=\d+\)\s*)?(?:ERROR .{0,40}\] )?\s*(?:File "|at |\^+$|Traceback )')

_ALARM_LEVEL = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|PANIC|EMERG|SEVERE)\b|\b[EF]\d{4} \d\d:\d\d:\d\d"
    r"|\b(?:level|severity)[=:] ?\"?(?:error|fatal|critical)"
    r"|(?:^|\s)(?:[a-z][\w.-]{1,30}|[A-Za-z][\w.-]{1,30}\[\d{1,10}\]): (?:[Ee]rror|[Ff]atal): "
    r"|(?:^\s{0,40}|[\])|]:? |\d\d:\d\d:\d\d\S{0,16} )"
    r"(?:(?:[A-Za-z][\w.-]{1,30}: )?(?:[Ee]rror|[Ff]atal): |\[(?:error|crit|alert|emerg)\] )"
)
_MAY_BE_FAILURE = re2.compile(
    rb"(?:ERROR|CRITICAL|FATAL|PANIC|EMERG|SEVERE|Error|Exception|Interrupt|Exit|Failure|Timeout|Traceback"
    rb"|(?i:fatal|panic|failed|failure|cannot|unable to|unhandled|denied|refused|died|kill|crash|abort|reset"
    rb"|terminate called|timed? ?out|not found|exceeded|invalid)|[EF]\d{4} \d\d:|error: "
    rb"|(?:level|severity)[=:] ?\"?(?:error|fatal|critical)"
    rb"|(?:ERR|FTL|PNC) |[EFC] \d{1,8} \d|\.\d{3} E "
    rb"|\[(?:error|crit|alert|emerg)\] )[^\n]*"
)
"""Every line for which :func:`is_failure_candidate` is true holds one of these; a test holds it to that."""
_LOGGER_HEAD = re.compile(
    r"(?:\[rank\d{1,4}\]:\s?)?(?:\([^()\n]{1,80}=[^()\n]{1,80}\)\s?)*"
    r"(?:(?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG)[ :]\s{0,5}(?:[\d-]{5,10} [\d:.,]{8,16} )?"
    r"(?:\[?[\w./-]{1,80}:\d{1,6}\]\s?)?)?"
)
_RAISED = re.compile(r"(?:\w{1,60}\.){0,6}\w{0,60}(?:Error|Exception): ")
_NO_WORDS = re.compile(r"ERROR \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]{1,80}:\d{1,6}\] *$")
"""An empty line of a message of vLLM's, which writes its head before each."""
_SOURCE = re.compile(r"\s+(?:raise|return|await)\b")
_CONTINUED = re.compile(r"$|\s|File \"|[\^~|]+\s*$|During handling of the above|The above exception was")
_BROKEN_OFF = re.compile(r"\w{2,40} [\w./:()-]{1,60},?\s*$")
_IN_A_SENTENCE = re.compile(r" {0,2}(?!raise |return |await |assert |from |import |with )[a-z]{2,20} [\w(]")
TRACEBACK = "Traceback (most recent call last)"
_SIGNS = {
    "'": ("\u2018", "\u2019", "&apos;", "&#39;", "&#039;", "&#x27;"),
    '"': ("\u201c", "\u201d", "&quot;", "&#34;"),
    "<": ("&lt;",),
    ">": ("&gt;",),
}
"""Quotes and brackets as a page, a chat or a mail writes them."""

_RECORD = re.compile(r"(?:\([^()]{1,40}\) )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d")


def clean(text: str) -> str:
    """The text without terminal colours, also where an exporter has spelled the escape character out.

    Quotes and brackets that were curled, or spelled for HTML, are signs again in a text that has none of their kind:
    within the quotes of a prompt one would end it. An ampersand that is spelled always is one.
    """
    if "\x1b" in text or "\x00" in text or "\x08" in text or "\x07" in text:
        text = _ANSI.sub("", text)
    if "[" in text and ("^[[" in text or "1b[" in text or "033[" in text or "␛[" in text):
        text = _CARET.sub("", text)
    for sign, written in _SIGNS.items():
        if sign not in text:
            for other in written:
                text = text.replace(other, sign)
    return text.replace("&amp;", "&")


def split_lines(text: str) -> list[str]:
    """Lines of a log, cleaned, each at most ``MAX_LINE_CHARS`` long; a carriage return ends a line too."""
    return [line[:MAX_LINE_CHARS] for line in clean(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def unwrapped(lines: Sequence[str]) -> list[str]:
    """The lines, where a sentence that was broken over two of them stands whole in the first, and the other is empty.

    A line goes on below where it ends within a sentence, and the next begins with a word in small letters.
    """
    whole = list(lines)
    at = 0
    for index in range(1, len(whole)):
        broken = _BROKEN_OFF.search(lines[index - 1]) and _IN_A_SENTENCE.match(whole[index])
        if broken and len(whole[at]) < MAX_LINE_CHARS:
            whole[at], whole[index] = f"{whole[at].rstrip()} {whole[index].strip()}", ""
        else:
            at = index
    return whole


def records_of(line: str) -> list[str]:
    """The records that a line holds, where whoever copied a log has lost its line ends; a line of one record is itself.

    A record begins where vLLM's logger begins one: the process that speaks, its level and a date.
    """
    if line.count(":") < 4:  # two times of day
        return [line]
    starts = [match.start() for match in _RECORD.finditer(line)][1:]
    if not starts:
        return [line]
    return [line[first:last].rstrip() for first, last in zip([0, *starts], [*starts, len(line)], strict=True)]


def most_informative_lines(lines: list[str], *, most: int = 5) -> list[int]:
    """Indexes of the lines that say most about an unknown trouble, most telling first.

    An exception with its words comes before a loud line, the last exception before earlier ones, and
    traceback frames and progress lines come last.
    """

    def weight(index: int) -> tuple[int, int]:
        line = lines[index]
        if not line.strip():
            return (-1, 0)
        if _FRAME.search(line):
            return (0, index)
        score = 1
        if _EXCEPTION.search(line):
            score = 4
        elif _LOUD.search(line):
            score = 3
        if _QUIET.search(line):
            score = min(score, 2)
        return (score, index)

    ranked = sorted(range(len(lines)), key=weight, reverse=True)
    return [index for index in ranked[:most] if lines[index].strip()]


def looks_like_failure(line: str) -> bool:
    """Whether a line that the catalogue does not know may be a failure."""
    return bool((_EXCEPTION.search(line) or _LOUD.search(line)) and not _is_quiet(line))


def _short_level(line: str) -> str:
    """The first letter of a level of one or three letters: I, D, T, W, E, F, P or C; empty where none is written."""
    found = _SHORT_LEVEL.match(line)
    if found is None and _MAY_BE_SHORT.search(line, 0, 200):
        found = _SHORT_LEVEL.match(body_of(line))
    return (found[1] or found[2] or found[3] or found[4])[0] if found else ""


def _is_short_error(line: str) -> bool:
    return _short_level(line) in {"E", "F", "P", "C"}


def _is_quiet(line: str) -> bool:
    if _short_level(line) in {"I", "D", "T", "W"}:
        return True
    return _QUIET.search(line) is not None and _QUIET.search(_without_advice(line)) is not None


def _without_advice(line: str) -> str:
    said = _MESSAGE.search(line) if _ADVISED_LEVEL.search(line) else None
    return line if said is None else line[: said.end()] + _ADVISED_LEVEL.sub("", line[said.end() :])


def is_failure_candidate(line: str) -> bool:
    """Whether a line that the catalogue does not know may be a failure: alarming, not INFO, no source line."""
    rest = _AVOIDED.sub("", _NONE.sub("", line))
    if _is_quiet(line):  # most lines are; without what it denies it may be loud
        loud = rest != line and looks_like_failure(rest)
    else:
        loud = bool(_ALARM_LEVEL.search(line)) or _is_short_error(line) or looks_like_failure(rest)
    return loud and not is_note(line) and not _SOURCE.match(line, _head_end(line)) and not _NO_WORDS.search(line)


def failure_candidates(lines: Sequence[str]) -> Iterator[int]:
    """Yield the positions of the lines that may be a failure, in order (:func:`is_failure_candidate`)."""
    text, starts = joined(lines)
    for found in _MAY_BE_FAILURE.finditer(text):
        index = bisect_right(starts, found.start()) - 1
        if is_failure_candidate(lines[index]):
            yield index


def joined(lines: Sequence[str]) -> tuple[bytes, list[int]]:
    """One buffer of all lines, and where each line starts in it (one more for the end)."""
    if all(map(str.isascii, lines)):
        return "\n".join(lines).encode(), list(accumulate([len(line) + 1 for line in lines], initial=0))
    encoded = [line.encode("utf-8", "surrogatepass") for line in lines]
    return b"\n".join(encoded), list(accumulate([len(line) + 1 for line in encoded], initial=0))


def is_error_line(line: str) -> bool:
    """Whether a line says of itself that it is an error: its level, an exception by name, or a traceback's head.

    The lines inside a traceback are none; the exception that ends it speaks for them.
    """
    if _is_quiet(line) or not (
        _ALARM_LEVEL.search(line) or _EXCEPTION.search(line) or TRACEBACK in line or _is_short_error(line)
    ):
        return False
    return not is_continued(line)


def is_continued(line: str) -> bool:
    """Whether a line goes on with what the line above began: a frame, its source, or an empty line of a logger."""
    return bool(_CONTINUED.match(line, _head_end(line)))


def indent_of(line: str) -> int:
    """How many blanks stand before the words that a process wrote behind its own name and level."""
    words = words_of(line)
    return len(words) - len(words.lstrip())


def words_of(line: str) -> str:
    """What a process says in a line, without its own name, the level, the time and the place in its code."""
    return line[_head_end(line) :]


def has_head(line: str) -> bool:
    """Whether a process wrote its name or a level before the words of the line."""
    return _head_end(line) > 0


def is_bare(line: str) -> bool:
    """Whether a line says neither its level nor who wrote it, and goes on with nothing above it."""
    told = is_note(line) or is_warning(line) or has_head(body_of(line)) or is_continued(line)
    return bool(line.strip()) and not told


def _head_end(line: str) -> int:
    """Where the words begin that a process wrote behind its own name and level."""
    head = _LOGGER_HEAD.match(line)
    return head.end() if head else 0


def is_note(line: str) -> bool:
    """Whether a line says of itself that it is INFO or DEBUG; the first level in it decides, not a word further on."""
    short = _short_level(line)
    if short:
        return short in {"I", "D", "T"}
    head = line[:200]
    if _NOTE_WORD.search(head) is None:
        return False
    if _NOTE.search(head) is None:
        return _is_small_note(line)
    head = _without_advice(head)
    found = _NOTE.search(head)
    return found is not None and not _ERROR_LEVEL.search(head, 0, found.start())


def _is_small_note(line: str) -> bool:
    """Whether a level in small letters stands at the head of a line; one that words follow at once, behind a time."""
    body = body_of(line)
    found = _SMALL_NOTE.match(body)
    if found is None or is_error_line(found["before"]) or _LOUD.search(found["before"]):
        return False
    return not found["words"] or _CLOCK.search(line[: len(line) - len(body)] + found["before"]) is not None


def is_fatal(line: str) -> bool:
    """Whether a line calls itself CRITICAL or FATAL: no harmless phrase in it speaks for it."""
    return bool(_FATAL_LEVEL.search(line[:200]))


def tells_an_end(line: str) -> bool:
    """Whether a line says that something died, or that the last of several tries failed."""
    return bool(_GAVE_UP.search(line[:1000]))


def is_platforms_error(line: str) -> bool:
    """Whether a line is an error by the level that klog, zerolog, Ray's C++ or a logger of fields writes.

    Those are programs of the platform: what a note of the catalogue says of a Python program is not said of them.
    """
    return _is_short_error(line) or bool(_ERROR_FIELD.search(line[:200]))


def is_raised(line: str) -> bool:
    """Whether a line is an exception as Python ends a traceback with it: its name, and what it says."""
    return _RAISED.match(line, _head_end(line)) is not None


def is_warning(line: str) -> bool:
    """Whether a line says of itself that it is a warning, in Python's words or in those of glog and PyTorch's C++."""
    return _short_level(line) == "W" or bool(_WARNING.search(line[:200]))


def continues_warning(lines: Sequence[str], index: int) -> bool:
    """Whether a line is of a warning of Python whose words begin below its head, and does not call itself an error."""
    server = server_of(lines[index])
    for line in reversed(lines[max(0, index - LONGEST_WARNING) : index]):
        if server_of(line) != server:
            continue
        if "warnings.warn(" in line:
            return False
        if line.rstrip().endswith("Warning:") and _WARNED_ABOVE.search(line[-200:]):
            return not is_error_line(body_of(lines[index]))
    return False


def warns_of_failure(line: str) -> bool:
    """Whether a warning speaks of a failure."""
    return is_warning(line) and _LOUD.search(line) is not None


def names_exception(line: str) -> bool:
    """Whether a line names an exception, or is the head of a traceback."""
    return _EXCEPTION.search(line) is not None or TRACEBACK in line
