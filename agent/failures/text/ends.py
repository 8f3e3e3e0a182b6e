"""The end of a process, as shells, supervisors, container runtimes, platforms and Python report it."""

import re

_NUMBER = (
    r"(?!(?:143|130|15|0)\b)(?:-\d{1,10}|\d{1,2}|1\d\d|255|322122\d{4}|0xc[0-9a-fA-F]{7})\b(?! of\b)"
    r"|SIG(?!TERM|INT|HUP)[A-Z]{3,5}\b"
)
_ENDED = re.compile(
    r"\b(?:[Ee]xit(?:ed|s)?|terminated|ended|died|stopped|killed|failed|failure)\b.{0,60}"
    rf"\b(?:status|code|Code|signal|sig|rc|exitcode)\b[^\w-]{{0,12}}(?:is |was |of )?(?:{_NUMBER})"
    rf"|\b(?:status|code|signal) \[(?:{_NUMBER})\]|\bwith signal '?SIG(?!TERM|INT|HUP)"
    r"|\bexited (?:abnormally|unexpectedly)\b|\babnormal (?:code|exit)\b|\(core dumped\)"
    r"|\b(?:[Ee]xited|Restarting) \((?!(?:0|143|130)\))\d{1,3}\)|\bFATAL state\b|\bnot expected\)"
    r"|\b0/[1-9]\d?\s{1,12}(?:Init:)?(?:Error|Evicted|[A-Z][A-Za-z]{0,40}(?:Error|Unknown)|Unknown)\s"
    r"|\b(?:process|container|service|server|engine) is not running\b"
    rf"|(?:^|\s)\+{{1,4}} exit (?:{_NUMBER})\s*$"
    r"|\] Error (?!(?:130|143)\b)[1-9]\d{0,2}\s*$"
    r"|\b(?:[Cc]ontainer|[Rr]unner|[Ii]nstance|[Ww]orker) (?:terminated|crashed|died)\b"
    r"|\bprocess \[\d{1,10}\] died\b|\bSignal \((?!15\)|2\))\d{1,2}\) received|<defunct>\s*$|\bPowering off\b"
    r"|\btarget System (?:Reboot|Power Off)|\bPreempt for\b"
    r"|\bg?make(?:\[\d{1,3}\])?: \*\*\* \[(?!.{0,400}\] (?:Interrupt|Terminated|Error 1(?:30|43))\b)"
    r"|(?:^|\s)\d{1,4} errors? generated\.$"
    r"|\b(?:malloc|realloc|free|munmap_chunk|malloc_consolidate)\(\): |^(?:corrupted (?:size|double)|npm ERR!)"
)
"""No code of a success, nor of a signal by which a server is stopped in order (SIGTERM, SIGINT)."""
_WORDS = (
    *("xit", "terminated", "ended", "died", "stopped", "killed", "fail", "crashed", "status [", "code [", "signal"),
    *("core dumped", "abnormal", "Restarting (", "FATAL state", "not running", "not expected)", "0/", "] Error"),
    *("Signal (", "<defunct>", "Powering off", "target System", "Preempt for", "(): ", "corrupted ", "npm ERR!"),
    *("make", "generated."),
)
"""Most lines hold none of these, and are not searched for the expression above."""
_ANYTHING = "(?i:container|process|server|program|app)"
_WITHOUT_FAULT = re.compile(
    rf"(?:(?:{_ANYTHING}|(?P<name>[\w.-]{{1,120}})) exited with code 0"
    r"|Container called exit\(0\)|\.service: Deactivated successfully"
    r"|resource_tracker: There appear to be \d{1,9} leaked [a-z_]{1,40} objects to clean up at shutdown"
    r"|nanobind: leaked \d{1,9} [a-z_]{1,20}(?: records)?!)(?!\d)"
)
_OF_COMPOSE = re.compile(
    rf"\s*(?!{_ANYTHING} )(?P<name>[\w.-]{{1,120}}) exited with code (?!(?:143|130)\b)\d{{1,3}}\s*$"
)


def says_it_ended(line: str) -> bool:
    """Whether a line says that a process ended otherwise than in order, or does not run, and not how it goes on."""
    if "falling back" in line or not any(word in line for word in _WORDS):
        return False
    return _ENDED.search(line[:2000]) is not None


def ended_without_fault(line: str) -> str | None:
    """Whose container a line says to have ended, with 0 or with no word of a fault.

    Its name, or nothing where none is named; None for no end.
    """
    found = _WITHOUT_FAULT.search(line[:2000])
    return None if found is None else found["name"] or ""


def container_that_ended(line: str) -> str:
    """The container of which docker compose says that it ended, otherwise than asked; empty where it says nothing."""
    found = _OF_COMPOSE.match(line) if " exited with code " in line else None
    return found["name"] if found else ""
