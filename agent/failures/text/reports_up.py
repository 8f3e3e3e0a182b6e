"""Whether a program that no rule knows says that it is up or did what it was asked, and speaks of no trouble."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from agent.failures.text.log_text import is_bare, is_note, is_warning
from agent.failures.text.streams import body_of, server_of

_UP_OR_DONE = re.compile(
    r"\b(?<!not )(?<!n't )(?<!never )(?<!no )(?<!without )(?:[Ll]istening (?:at|on|for)\b"
    r"|[Rr]eady (?:to (?:accept|receive|serve|handle)|for connections)\b|[Rr]eady\.?\s*$"
    r"|[Rr]unning on (?:all addresses|https?:|port)"
    r"|(?:server|service|app(?:lication)?|gateway) (?:is )?(?:up|ready|running)\b"
    r"|[Ss]tart(?:ed|up)(?: \w{1,40}){0,3} (?:in|at|on|completed?)\b|[Rr]esuming normal operations"
    r"|[Bb]ooting worker with pid|Debugger is active|initialized!"
    r"|[Ss]uccess(?:ful(?:ly)?)?\b(?![\"']?\s?[:=]\s?[\"']?(?:[Ff]alse|0|no)\b)"
    r"|connection (?:open|accepted)\b|COMPLETED|Bundled \d{1,8}ms|Sending due task|succeeded\b"
    r"|Disconnect, exit_type=INTENDED_EXIT.{0,200}"
    r"|[Gg]raceful(?:ly)? (?:shut|stop)|[Ww]arm shutdown|[Ss]hutdown (?:initiated|complete)|Hitting Ctrl\+C.{0,200}"
    r"|Shutting down: Master|Handling signal: (?:term|int|winch)|(?:received|caught|got) SIG(?:TERM|INT)\b)"
    r"|\" [23]\d\d\b|(?:->|→|\|) ?[23]\d\d\b"
    r"|\b(?:status|code|status_code)[\"']?\s?[=:]\s?\"?[23]\d\d\b"
    r"|\b(?:GET|POST|PUT|PATCH|DELETE|HEAD) \S{1,300} (?:[23]\d\d|\d{1,6}(?:\.\d{1,6})? ?ms)\b"
)
_TROUBLE = re.compile(
    r"\b(?:could(?:n't| not)|can(?:'t|not)|unable|errors?|err|exception|fail\w*|missing|no such|denied|refused"
    r"|reject\w*|(?:not|no|never|without) (?:found|ready|respond\w*|reachable|available|running|health\w*"
    r"|supported|installed|exist\w*|success\w*|succeed\w*|listen\w*|start\w*)|success[\"']?\s?[:=]\s?[\"']?(?:false|no)"
    r"|un(?:available|reachable|healthy|responsive|expected(?:ly)?|supported|recogni\w*)|giv(?:ing|en) up|gave up|gated"
    r"|lost|closed|disconnect\w*|mismatch\w*|stuck|hang\w*|hung|deadlock\w*|out of|insufficient|corrupt\w*|overflow"
    r"|overload\w*|panic\w*|crash\w*|died|dead|kill\w*|abort\w*|time-?outs?|timed? out|exceed\w*|invalid|terminat\w*"
    r"|exit(?:ed|s|code)?|stop(?:ped|ping)?|shut(?:ting)? ?down(?! at \d)|degraded|(?<!shut )down|backoff|evicted|oom"
    r"|preempt\w*|throttl\w*|retr(?:y|ies|ying)|must|needs?|traceback|fatal|critical|nvrm"
    r"|restart(?!ed\b)\w*|attempt \d+"
    r"|wait\w* (?:for|until) .{1,80}\b(?:ready|up|healthy)|raised|taken more than|gone|silen(?:t|ce)|stall\w*"
    r"|fro[sz]e\w*|broken|bad|wrong|illegal|incompatible|conflict|in use|forbidden|not enough|unauthori[sz]ed"
    r"|segfault|sig(?:segv|kill|abrt|bus|ill)|rc[=:] ?[1-9]\d*|0 of [1-9]\d*"
    r"|nicht|keine?|erreur|impossible"
    r"|(?:not|does not|do not|never|nobody|nothing|none) (?:\w+ )?(?:fit|load\w*|answer\w*|listen\w*)"
    r"|enot\w+|econn\w+|epipe|eaddr\w+|etimedout|enospc|enoent|enomem)\b"
    r"|(?-i:[^\W\d_A-Za-z])|\b0/[1-9]\d{0,3}\s+(?!completed)[a-z]"
    r"|n't\b|\bframe #\d|\bFile \"[^\"]{1,300}\", line \d|^\s{1,8}at [\w.$]|\.pyx?\", line"
    r"|(?:\" |\| ?|[-=]> ?|→ ?|HTTP/[\d.]{1,3} |\b(?:status|code|status_code)[\"']?\s?[=:]\s?\"?) ?5\d\d\b"
    r"|\b(?:GET|POST|PUT|PATCH|DELETE) \S{1,300} 5\d\d\b",
    re.IGNORECASE,
)

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NOT_YET = re.compile(r"\b(?:wait\w* (?:for|until|till)|until|nobody|nothing|none|not all|expect\w*)\b", re.IGNORECASE)
_LISTENS = re.compile(r"[Ll]istening|[Rr]unning on")
MOST_STARTS = 3
"""A program that says so often in the same words that it listens is started again and again."""


def reports_up(lines: Sequence[str]) -> bool:
    """Whether each program says that it is up, or did what it was asked, and nothing below speaks of any trouble.

    Below stand only lines with a level, for of others nobody knows what they mean; above, of those that speak of
    trouble only notes and warnings, for of them the program says itself that it goes on. A program is what a collector
    names before its lines; none speaks for another.
    """
    written: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line.strip():
            written[server_of(line)].append(body_of(line))
    return bool(written) and all(map(_goes_on, written.values()))


def _goes_on(lines: Sequence[str]) -> bool:
    said = [at for at, line in enumerate(lines) if _says_so(line)]
    if not said or any(is_bare(line) for line in lines[said[-1] + 1 :]) or _begins_again(lines, said):
        return False
    return not any(
        (_speaks_of_trouble(line) or _UP_OR_DONE.search(line))
        and (at > said[-1] or not (is_note(line) or is_warning(line)))
        for at, line in enumerate(lines)
        if at not in said
    )


def _begins_again(lines: Sequence[str], said: Sequence[int]) -> bool:
    """Whether what stands above the first word that it is up stands below the last one, or it came up ever again."""
    begun = {line for line in lines[: said[0]] if line.strip()}
    ups = Counter(lines[at] for at in said if _LISTENS.search(lines[at]))
    return not begun.isdisjoint(lines[said[-1] + 1 :]) or max(ups.values(), default=0) >= MOST_STARTS


def _says_so(line: str) -> bool:
    """Whether a line says that its program is up, and speaks of no trouble besides, nor of what it waits for."""
    found = _UP_OR_DONE.search(line)
    return found is not None and not _NOT_YET.search(line) and not _speaks_of_trouble(_UP_OR_DONE.sub(" ", line))


def _speaks_of_trouble(line: str) -> bool:
    return _TROUBLE.search(_HUMP.sub(" ", line)) is not None
