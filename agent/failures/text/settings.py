"""Environment variables and configuration, as scripts and programs show them: a name is set, and nothing failed."""

import re

_EVIDENCE = (
    r"(?!\w{0,60}(?:error|errno|fail|exit|code|status|signal|reason|result|message|msg|text|oom|kill|restart|count"
    r"|waiting|queue|pending|running|usage|used|free|avail|xid|ecc|retry|retries|attempt|dead|alive|health|ready\b"
    r"|replicas|state|phase|condition)|rc\b)"
)
"""What holds one of these words may be a report, whatever its form."""
_FIRST_WORD = rf"(?i:{_EVIDENCE})[A-Z][A-Z0-9]{{0,30}}"
_ASSIGNED = rf"{_FIRST_WORD}(?:_[A-Z0-9]{{1,40}}){{0,10}}=(?:\"[^\"]{{0,200}}\"|'[^']{{0,200}}'|[^\s\"']{{0,200}})"
_BEFORE_A_COMMAND = re.compile(
    r"\s{0,40}(?:[$#+>]{1,3} |#|export |declare -x |ENV |[Ee]nv(?:ironment)?[:=] ?){0,2}"
    rf"(?:{_ASSIGNED}(?:\s+|$)){{1,60}}"
)
"""Assignments that begin a line, as a shell traces them or a file of an environment holds them."""
_ANNOUNCED = re.compile(
    r"\s{0,40}(?:\[[\w .:-]{1,40}\]:? (?:[Ss]et(?:ting)? |[Uu]sing |[Ee]xport(?:ing)? )?"
    r"|(?:Using|Setting|Export(?:ing|ed)) )"
    rf"(?:{_FIRST_WORD}(?:_[A-Z0-9]{{1,40}}){{1,10}}=(?:-?\d[\d.]{{0,20}}|[Tt]rue|[Ff]alse|/[\w./-]{{1,200}})(?:\s+|$)){{1,60}}+"
    r"(?:set)?\s*"
)
"""Assignments that a script says it made: of a number, a switch or a path, which tell of no failure."""
_OF_A_CONTAINER = re.compile(rf"\s(?:-e|--env)[ =]{_ASSIGNED}(?=\s|$)")
_DESCRIBED = re.compile(rf"\s{{2,20}}{_FIRST_WORD}(?:_[A-Z0-9]{{1,40}}){{1,10}}:\s{{1,20}}\S{{1,200}}\s*")
"""A variable as ``kubectl describe`` and YAML write it; one word alone, such as WARNING, may be a level."""
_NOTHING = r"(?:null|None|\{\}|\[\])"
_PLAIN = r"(?:[Tt]rue|[Ff]alse|-?\d[\d.e+-]{0,20})"
_PAIR = re.compile(
    r"(?:\([^()\n]{1,80}=[^()\n]{1,80}\))?\s{0,80}(?:"
    rf"[\"'](?!tool_calls|reasoning_content)[A-Za-z_][\w.-]{{1,60}}[\"']: ?{_NOTHING}"
    rf"|[\"'](?i:{_EVIDENCE})[A-Za-z_][\w.-]{{1,60}}[\"']: ?{_PLAIN}"
    rf"|(?i:{_EVIDENCE})[a-z][a-z0-9]{{0,30}}(?:_[a-z0-9]{{1,40}}){{1,10}}(?:: ?| ?= ?)(?:{_NOTHING}|{_PLAIN})"
    r"|(?:[A-Z][a-z]{1,30} ){1,4}(?:Timeout|Interval|Limit|Size|Port): -?\d[\d.]{0,20}"
    r"),?\s*"
)
"""One key of a configuration that is printed over several lines, and a value that says nothing by itself.

An answer that a client prints keeps these two keys: that it has no tool calls may be the complaint.
"""
_LAST = frozenset("0123456789le}],")
"""How a pair ends: most lines end otherwise, and are not searched."""
_FIRST = frozenset("$#+>ed")
"""How assignments begin that begin with no name."""
_ANNOUNCING = frozenset("USE")
"""How lines begin that announce: Using, Setting, Export."""


def is_setting(body: str) -> bool:
    """Whether a line, without what a collector writes before it, sets one name and does nothing else."""
    if body[:1].isspace() and _DESCRIBED.fullmatch(body):
        return True
    return body.rstrip()[-1:] in _LAST and _PAIR.fullmatch(body) is not None


def without_variables(line: str) -> str:
    """The line without the environment variables that it sets for a command, or for a container."""
    if "=" not in line or "_" not in line:
        return line
    first = line.lstrip()[:1]
    if (first == "[" or first in _ANNOUNCING) and _ANNOUNCED.fullmatch(line):
        return ""
    begins = _BEFORE_A_COMMAND.match(line) if first.isupper() or first in _FIRST else None
    line = line[begins.end() :] if begins else line
    return _OF_A_CONTAINER.sub("", line) if " -e" in line or " --env" in line else line
