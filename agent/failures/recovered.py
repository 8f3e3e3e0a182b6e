"""Which troubles of a text stand: those that nothing below them, no ordered stop and no handler ended."""

import re
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from agent.failures.asked_to_end import PASSING, Asked
from agent.failures.signature import PLAIN_TROUBLE, TROUBLE, FailureClass, Phase, Proof, Role, Sighting, Signature
from agent.failures.text.answers import Answers
from agent.failures.text.asleep import without_tokens_asleep
from agent.failures.text.documents import documents
from agent.failures.text.log_text import failure_candidates, is_error_line, is_failure_candidate, is_warning
from agent.failures.text.no_evidence import (
    GOES_ON,
    INTERRUPT,
    counts_none,
    ends_process,
    ends_script,
    is_dumped,
    is_handled,
    is_mild,
    is_programs,
    is_quoted,
    is_refusal,
    says_it_passed,
    without_arguments,
    without_flag_names,
)
from agent.failures.text.phases import Timeline
from agent.failures.text.pod_starts import PodStarts
from agent.failures.text.queues import Queues
from agent.failures.text.starts import STARTING, UP, PhaseMark
from agent.failures.text.streams import body_of
from agent.failures.text.subjects import Subject, subject_at, unit_told_to_stop
from agent.failures.text.tracebacks import end_of_traceback

_Ends = Mapping[tuple[str, int] | None, Sequence[int]]

NEVER_OVER = frozenset({FailureClass.GPU_HARDWARE_FAULT, FailureClass.HOST_OOM, FailureClass.ENGINE_DEAD})
"""A broken card, a kill, a memory limit and a dead engine are not survived, whatever is served afterwards."""

NOT_HANDLED = NEVER_OVER | {FailureClass.ILLEGAL_MEMORY_ACCESS}
"""No handler gets over these either: a CUDA error of a kernel stays with its process, and every later call fails."""

PER_REQUEST = frozenset(
    {
        FailureClass.CONTEXT_LENGTH_EXCEEDED,
        FailureClass.TOOL_PARSER_ERROR,
        FailureClass.CHAT_TEMPLATE_ERROR,
        FailureClass.QUEUE_SATURATION,
    }
)
"""Troubles of some requests: that others are served is part of the picture."""

STAYS = PER_REQUEST | {FailureClass.ILLEGAL_MEMORY_ACCESS}
"""What tokens do not end: a process whose kernel failed still counts those of the seconds before, and is lost."""

AT_THE_PORT = frozenset({FailureClass.PORT_NOT_LISTENING, FailureClass.STARTUP_PROBE_FAILED})
"""What is over once requests are served at that port, also by a server whose banner is not in the text."""

PORT_NOT_OPEN = ("Unhealthy", "connection refused")
"""Words of the kubelet's event of one try; other platforms report when they have given up."""

TELLS_AN_END_FROM = 41
"""Consequences of this precedence and more say how a process ended (agent/catalogue/failures/ranks.toml)."""

MACHINE_FROM = 92
"""A cause of this precedence says that the kernel or the platform ended the process (ranks.toml): it is never over, for
the process may print on until it is killed."""

BROKEN = frozenset({FailureClass.UNSUPPORTED_ARCHITECTURE, FailureClass.WEIGHTS_UNREADABLE})
"""What a checkpoint may be, whose requests are all refused."""

BEFORE_WEIGHTS = frozenset(
    {FailureClass.MODEL_NOT_FOUND, FailureClass.MODEL_ACCESS_DENIED, FailureClass.NETWORK_TIMEOUT}
)
"""What keeps a start from its weights."""

BESIDE_LINES = 120
"""A stop that is reported within so many lines of an interrupt is the same."""

OF_A_SCRIPT = frozenset(
    {FailureClass.MODEL_NOT_FOUND, FailureClass.INVALID_FLAG, FailureClass.UNSUPPORTED_ARCHITECTURE}
)
"""What a script that prepares a start may say of its own work."""

NAMES_A_MECHANISM_FROM = 60
"""Causes of a lower precedence are words that stand in ordinary logs too (ranks.toml)."""

ONLY_WORDS = OF_A_SCRIPT | {
    FailureClass.UNSUPPORTED_DTYPE_OR_QUANT,
    FailureClass.NETWORK_TIMEOUT,
    FailureClass.TOOL_PARSER_ERROR,
    FailureClass.MODEL_ACCESS_DENIED,
    FailureClass.QUOTA_EXCEEDED,
}
"""What the words of a script, or of a server that is up, may say of something that they go on without."""

_NOBODY_LISTENS = re.compile(
    r"(?i:\bconnection refused|ECONNREFUSED|\[Errno 111\]|\bConnectError\b|Connect call failed)"
)
_NOBODY_ANSWERS = re.compile(_NOBODY_LISTENS.pattern + "|APIConnectionError|Connection aborted|Disconnected")
"""What somebody sees who calls a server before it is up; the hub and a runtime's socket are not such servers."""


def evident(lines: Sequence[str], sightings: Sequence[Sighting]) -> tuple[list[Sighting], list[int], list[Sighting]]:
    """Return sightings, and lines that may be a failure, that are neither quoted nor handled.

    Third are the sightings of troubles in rule files and help texts.
    """
    said = [s for s in sightings if s.signature.role in PLAIN_TROUBLE]
    kept = {s.index for s in said if not NOT_HANDLED.isdisjoint(_classes(s))}
    poisoned = (s for s in sightings if s.signature.failure_class is FailureClass.ILLEGAL_MEMORY_ACCESS)
    kept |= {s.index for s in poisoned} - {s.index for s in said}  # of a CUDA error that nobody knows, a hint is enough

    shown = documents(lines) if any(s.signature.role in TROUBLE for s in sightings) else frozenset()
    quoted = [s for s in sightings if s.index in shown and s.signature.role in TROUBLE]
    sightings = [s for s in sightings if s.index not in shown or s.signature.role not in TROUBLE]

    @cache
    def is_evidence(index: int) -> bool:
        no_trouble = counts_none(lines[index]) or is_quoted(lines, index)
        return not no_trouble and (index in kept or not is_handled(lines, index))

    reduced = ((at, without_flag_names(without_arguments(lines[at]))) for at in failure_candidates(lines))
    candidates = [at for at, words in reduced if words == lines[at] or is_failure_candidate(words)]
    loud = [at for at in candidates if is_dumped(lines[at]) or (is_evidence(at) and not is_refusal(lines, at))]
    stands = [s for s in sightings if s.signature.role not in TROUBLE or is_evidence(s.index)]
    refused = [s for s in stands if not _of_a_request(s) and is_refusal(lines, s.index)]
    clients = {s.index for s in refused} - _of_the_checkpoint(refused, sightings)
    return [s for s in stands if _of_a_request(s) or s.index not in clients], loud, quoted


def without_other_programs(lines: Sequence[str], sightings: Sequence[Sighting]) -> Sequence[Sighting]:
    """The sightings without those about programs that are none of the server's, as the unit above a line may say."""
    asked = [s for s in sightings if s.signature.names_subject and s.signature.precedence < MACHINE_FROM]
    others = {id(s) for s in asked if subject_at(lines, s.index) is Subject.PROGRAM}
    return [s for s in sightings if id(s) not in others] if others else sightings


def _of_the_checkpoint(refused: Sequence[Sighting], sightings: Sequence[Sighting]) -> set[int]:
    """Positions of the refusals that a broken checkpoint may explain: no request was served, or several are refused."""
    broken = {s.index for s in refused if s.signature.role is Role.CAUSE and s.signature.failure_class in BROKEN}
    served = any(s.signature.proof is Proof.TOKENS for s in sightings)
    return broken if len(broken) > 1 or not served else set()


def _of_a_request(sighting: Sighting) -> bool:
    """Whether a sighting means something in a traceback of a refused request: no setting and no checkpoint is bad."""
    if sighting.signature.role not in TROUBLE:
        return True
    entry = sighting.signature
    return entry.role is not Role.HINT and not (PER_REQUEST | NOT_HANDLED).isdisjoint(_classes(sighting))


def _classes(sighting: Sighting) -> frozenset[FailureClass]:
    entry = sighting.signature
    return frozenset({entry.failure_class, *entry.class_by_phase.values(), *entry.becomes})


def _probed(sightings: Sequence[Sighting], lines: Sequence[str]) -> frozenset[int]:
    """Positions of the kubelet's events of single tries at a port that is not open yet, where they tell of no end."""
    troubles = [s for s in sightings if s.signature.role in PLAIN_TROUBLE]
    others = {s.index for s in troubles if not _is_observed_probe(s.signature)}
    tries = {s.index for s in troubles if all(word in lines[s.index] for word in PORT_NOT_OPEN)}
    return frozenset(tries - others)


def timeline_of(
    lines: Sequence[str], sightings: Sequence[Sighting], loud: Sequence[int], servers: Sequence[str]
) -> Timeline:
    """How far each start had come, from the sightings and the lines that may be a failure."""
    spoken = (s.index for s in sightings if s.signature.role in TROUBLE or s.signature.proof is Proof.ASKED)
    marks = [_mark(s) for s in sightings if s.signature.role is Role.PHASE]
    marks = [mark for mark in marks if mark.proof not in {Proof.QUEUE_EMPTY, Proof.INTERRUPTED}]
    ended = [s.index for s in sightings if s.signature.role is Role.BENIGN and s.signature.phase is Phase.STOPPING]
    probed = _probed(sightings, lines)
    awake = without_tokens_asleep(lines, marks)
    return Timeline(awake, lines, sorted({*loud, *spoken}), servers, probed=probed, ended=ended)


def standing(
    lines: Sequence[str], sightings: Sequence[Sighting], timeline: Timeline, *, one_server: bool = False
) -> list[Sighting]:
    """The troubles among sightings that are not over (docs/adr/0010-when-a-failure-is-over.md).

    ``one_server`` takes the lines that no collector names for those of one server, whoever seems to write among them.
    """
    asked = Asked(sightings, lines, timeline)
    deadly = (s for s in sightings if _is_end(s.signature) and not asked.covers(s))
    deaths: dict[tuple[str, int] | None, list[int]] = defaultdict(list)
    for s in deadly:
        if not _ordered_stop(s, lines, timeline):
            insort(deaths[timeline.start(s.index)], _told_until(s.index, lines, timeline))
    started = PodStarts([s.index for s in sightings if s.signature.proof is Proof.STARTED], lines, timeline)
    answers = Answers(lines, timeline)
    empty = [_mark(s) for s in sightings if s.signature.proof is Proof.QUEUE_EMPTY]
    queues = Queues([s.index for s in sightings if is_queue(s.signature)], empty, lines, timeline)
    return [
        s
        for s in sightings
        if s.signature.role in TROUBLE
        and not (
            queues.drained_after(s.index)
            if is_queue(s.signature)
            else _over(s, timeline, deaths, None if one_server else queues)
            and not (s.signature.passing and answers.never_given(s.index))
        )
        and not _ordered_stop(s, lines, timeline)
        and not asked.covers(s)
        and not (started.covers(s.index) or (_may_be_of_a_node(s) and started.node_is_back(s.index)))
        and not (s.signature.passing and answers.given_later(s.index))
        and not (started.answered(s.index) if _is_observed_probe(s.signature) else started.pulled(s.index))
        and not (_is_refused(s, lines) and timeline.others_start(s.index))
        and not _is_guessed(s, lines, timeline)
    ]


def _may_be_of_a_node(sighting: Sighting) -> bool:
    return sighting.signature.failure_class is FailureClass.ENGINE_DEAD and sighting.signature.role is Role.CONSEQUENCE


def _is_guessed(sighting: Sighting, lines: Sequence[str], timeline: Timeline) -> bool:
    """Whether words alone, without a level or an exception, say that something is missing, late or not supported.

    They are of a script above the first start, or of a server that is up; so is a warning of what a script tries again.
    """
    entry, line = sighting.signature, lines[sighting.index]
    if is_error_line(body_of(line)):
        return False
    tried_again = entry.failure_class in ONLY_WORDS and is_warning(line) and says_it_passed(line)
    of_a_script = entry.role is Role.HINT and entry.failure_class in OF_A_SCRIPT
    if (tried_again or of_a_script) and timeline.begins_below(sighting.index):
        return True
    wide = entry.role is Role.HINT or (entry.role is Role.CAUSE and entry.precedence < NAMES_A_MECHANISM_FROM)
    return wide and entry.failure_class in ONLY_WORDS and timeline.phase_at(sighting.index) in UP


def ends_in_a_guess(lines: Sequence[str], sightings: Sequence[Sighting], timeline: Timeline) -> bool:
    """Whether a server that was up served nothing below words that were no guess and do not say how it goes on."""
    harmless = {s.index for s in sightings if s.signature.role in {Role.BENIGN, Role.PHASE}}
    return any(
        _is_guessed(s, lines, timeline)
        and timeline.phase_at(s.index) in UP
        and not timeline.served_after(s.index)
        and not (s.index in harmless or is_mild(lines, s.index) or GOES_ON.search(lines[s.index]))
        for s in sightings
    )


def _is_refused(sighting: Sighting, lines: Sequence[str], said: re.Pattern[str] = _NOBODY_LISTENS) -> bool:
    """Whether a line is of a client that found nobody listening, or nobody who answers."""
    if sighting.signature.failure_class not in {FailureClass.NETWORK_TIMEOUT, FailureClass.PORT_NOT_LISTENING}:
        return False
    line = lines[sighting.index]
    return said.search(line) is not None and not any(other in line for other in ("huggingface", "dial unix"))


def resting_on_others(
    lines: Sequence[str], sightings: Sequence[Sighting], timeline: Timeline, troubles: Sequence[Sighting]
) -> frozenset[tuple[int, str | None]]:
    """Line and signature of the troubles that stand only because the tokens below may be those of another server."""
    unnamed = any(timeline.may_be_of_two(s.index) for s in troubles)
    if not unnamed and not Queues([], [], lines, timeline).holds_turns:
        return frozenset()
    sure = {(s.index, s.signature.id) for s in standing(lines, sightings, timeline, one_server=True)}
    return frozenset((s.index, s.signature.id) for s in troubles) - sure


def without_doubtful_interrupts(
    lines: Sequence[str], sightings: Sequence[Sighting], timeline: Timeline
) -> list[Sighting]:
    """The sightings without the interrupts that may be no stop of a server that was up.

    A stop is one of the server's own program, or one beside other words of a stop; those of other processes of the same
    start go with it. People interrupt a start that hangs, and a worker that is interrupted alone may end the engine.
    """
    interrupts = [s for s in sightings if s.signature.proof is Proof.INTERRUPTED]
    stops = [s.index for s in sightings if s.signature.phase is Phase.STOPPING]
    by_hand = set()
    for one in interrupts:
        beside = range(one.index - BESIDE_LINES, one.index + BESIDE_LINES)
        start = timeline.start(one.index)
        stopping = any(at in beside and timeline.start(at) == start for at in stops)
        if timeline.marker_at(one.index) is Phase.SERVING and (stopping or is_programs(lines, one.index)):
            by_hand.add(start)
    return [s for s in sightings if s.signature.proof is not Proof.INTERRUPTED or timeline.start(s.index) in by_hand]


def _mark(sighting: Sighting) -> PhaseMark:
    entry = sighting.signature
    return PhaseMark(index=sighting.index, phase=entry.phase, near=entry.near, proof=entry.proof)


def is_queue(entry: Signature) -> bool:
    """Whether an entry says that requests wait: it is over when nobody waits, though tokens come all the while."""
    queue = entry.failure_class is FailureClass.QUEUE_SATURATION and entry.role is Role.CONSEQUENCE
    return queue and bool(entry.fields)


def _is_observed_probe(entry: Signature) -> bool:
    by_a_probe = entry.failure_class in PASSING - {FailureClass.ENGINE_HANG}
    return by_a_probe and entry.role is Role.CONSEQUENCE and entry.precedence < TELLS_AN_END_FROM


def _is_end(entry: Signature) -> bool:
    return entry.role is not Role.HINT and entry.failure_class in NEVER_OVER and not entry.passing


def _told_until(index: int, lines: Sequence[str], timeline: Timeline) -> int:
    """Where the words of an end are over: below the exception of the traceback that its line announces."""
    end = end_of_traceback(lines, index, timeline)
    return index if end is None else end + 1


def _over(sighting: Sighting, timeline: Timeline, deaths: _Ends, queues: Queues | None) -> bool:
    """Whether a trouble was survived.

    A trouble of start-up by the end of that very start, or by its tokens; one of serving by a completed request or a
    token counter that moved, unless the engine died in between; hardware, kills, memory limits, dead engines
    and what the platform ended never.
    A request that was refused stays refused, and a process whose kernel failed stays broken. Where several servers that
    nobody names write into one stream, nothing tells whose tokens they are; without ``queues`` that is not asked.
    A start that ended below, before anybody was up, is not the one that came up. ``deaths`` are the ends of each.
    """
    entry = sighting.signature
    passing = entry.passing or entry.failure_class in PASSING
    lasting = entry.role is Role.CONSEQUENCE or (entry.role is not Role.HINT and entry.failure_class in NEVER_OVER)
    lasting = lasting or (entry.role is Role.CAUSE and entry.precedence >= MACHINE_FROM)
    if lasting and not passing:
        return False
    ends = deaths.get(timeline.start(sighting.index), ())
    below = bisect_right(ends, sighting.index)
    if below < len(ends) and ends[below] < timeline.up_below(sighting.index):
        return False
    if timeline.started_after(sighting.index):
        return True
    stays = entry.failure_class in STAYS and not entry.passing
    if entry.role is Role.HINT or stays or not timeline.served_after(sighting.index):
        return False
    several = timeline.may_be_of_two(sighting.index) or (queues and queues.written_by_several(sighting.index))
    if queues is not None and several:
        return False
    began = timeline.phase_at(sighting.index)
    at_the_port = began is Phase.UNKNOWN and entry.failure_class in AT_THE_PORT  # no banner tells when it began
    passed = at_the_port or Phase.SERVING in {entry.phase, began}
    return began in STARTING - {Phase.CONFIG} or (passed and below == len(ends))


def got_past(sighting: Sighting, lines: Sequence[str], timeline: Timeline) -> bool:
    """Whether a start reported that it lacks its model or image, and went on with it: look for another cause.

    An exception that ends its process is none that anybody got over.
    """
    if "docker: Error response from daemon: pull access denied" in lines[sighting.index]:
        return timeline.begins_below(sighting.index)
    if sighting.signature.failure_class not in BEFORE_WEIGHTS or ends_process(lines, sighting.index):
        return False
    return timeline.phase_at(sighting.index) in {Phase.UNKNOWN, *STARTING} and timeline.loaded_after(sighting.index)


def _ordered_stop(sighting: Sighting, lines: Sequence[str], timeline: Timeline) -> bool:
    """Whether an engine ended because somebody stopped the server: what follows a signal is no trouble.

    A line that announces a traceback is of the exception that ends it; an engine that was interrupted did not die.
    """
    entry = sighting.signature
    ended = entry.failure_class is FailureClass.ENGINE_DEAD
    gone = _is_refused(sighting, lines, _NOBODY_ANSWERS)
    if (ended or gone or entry.role is Role.HINT) and timeline.stopped(sighting.index):
        return True
    end = end_of_traceback(lines, sighting.index, timeline) if ended and entry.role is not Role.CAUSE else None
    return end is not None and (INTERRUPT in lines[end] or timeline.stopped(end))


def is_stopped(lines: Sequence[str], index: int, timeline: Timeline) -> bool:
    """Whether somebody had stopped the server, or the unit, that a line is of."""
    return timeline.stopped(index) or unit_told_to_stop(lines, index)


def is_calmed(lines: Sequence[str], index: int, timeline: Timeline) -> bool:
    """Whether a loud line led to nothing: the start or the serving went on, or somebody was stopping the server.

    A traceback is the one of a stop where the exception that ends it is.
    """
    if timeline.started_after(index) or timeline.served_after(index):
        return True
    end = end_of_traceback(lines, index, timeline)
    if timeline.marker_at(index if end is None else end) is Phase.STOPPING or unit_told_to_stop(lines, index):
        return True
    return is_of_a_script(lines, index, timeline)


def is_of_a_script(lines: Sequence[str], index: int, timeline: Timeline) -> bool:
    """Whether a script failed by itself while its server was up, which ended in order below."""
    end = end_of_traceback(lines, index, timeline)
    at = index if end is None else end
    return timeline.ends_below(at) and timeline.marker_at(at) in UP and ends_script(lines, at)
