"""What a server answers while it sleeps is no token of one that works."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agent.failures.signature import Proof
from agent.failures.text.starts import PhaseMark
from agent.failures.text.streams import api_server_of, server_of

_TURN = re.compile(r'"POST /(?P<what>sleep|wake_up)(?:\?[^\s"]{0,200})? HTTP/\d(?:\.\d)?" (?P<status>[25])\d\d\b')
_BEGINS = frozenset({Proof.NEW_START, Proof.STARTUP_COMPLETE})


def without_tokens_asleep(lines: Sequence[str], marks: Sequence[PhaseMark]) -> Sequence[PhaseMark]:
    """The marks, in the order of lines; what a sleeping server answers proves only that its HTTP server does.

    A request that sleep aborts is answered with 200, as one that was served is. A server sleeps from a ``/sleep`` that
    it took, or a ``/wake_up`` that failed, until one that it took or a new start.
    """
    turns = [(at, found) for at, line in enumerate(lines) if '"POST /' in line and (found := _TURN.search(line))]
    if not turns:
        return marks
    asleep: dict[tuple[str, tuple[str, str] | None], bool] = {}
    kept: list[PhaseMark] = []
    for mark in marks:
        while turns and turns[0][0] <= mark.index:
            at, found = turns.pop(0)
            if (found["what"], found["status"]) != ("sleep", "5"):
                asleep[_process(lines[at])] = (found["what"], found["status"]) != ("wake_up", "2")
        server, process = _process(lines[mark.index])
        if mark.proof in _BEGINS:
            asleep = {one: state for one, state in asleep.items() if one[0] != server}
        sleeps = mark.proof is Proof.TOKENS and asleep.get((server, process))
        kept.append(replace(mark, proof=Proof.ANSWERS) if sleeps else mark)
    return kept


def _process(line: str) -> tuple[str, tuple[str, str] | None]:
    return server_of(line), api_server_of(line)
