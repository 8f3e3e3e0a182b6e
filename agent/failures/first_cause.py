"""Of all signatures in a text, which is the first cause, and how sure that is."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent.failures.finding import MAX_EVIDENCE_CHARS, EvidenceLine, Finding, Value
from agent.failures.harmless import SETTLED_FROM, ends_dead, harmless, unknown_of, who_is_down
from agent.failures.measure import measure
from agent.failures.recovered import (
    BROKEN,
    ends_in_a_guess,
    evident,
    got_past,
    is_of_a_script,
    is_stopped,
    resting_on_others,
    standing,
    timeline_of,
    without_doubtful_interrupts,
    without_other_programs,
)
from agent.failures.rules.rule_input import RuleInput, Ruling
from agent.failures.rules.rules import RULES
from agent.failures.signature import TROUBLE, FailureClass, Phase, Role, Sighting, Signature
from agent.failures.text.documents import may_only_describe
from agent.failures.text.log_text import (
    continues_warning,
    is_error_line,
    is_fatal,
    is_note,
    is_platforms_error,
    is_raised,
    is_warning,
    looks_like_failure,
    most_informative_lines,
    tells_an_end,
)
from agent.failures.text.no_evidence import (
    ends_process,
    ends_server,
    is_mild,
    is_refusal,
    says_it_passed,
)
from agent.failures.text.phases import Timeline
from agent.failures.text.starts import STARTING
from agent.failures.text.streams import body_of, pods_of, rank_of
from agent.failures.text.subjects import Subject, subject_at
from agent.failures.text.tracebacks import ends_in_traceback, ends_traceback, heads_traceback_of
from agent.failures.text.words import StatusWords

UNKNOWN_CONFIDENCE = 0.2
CERTAIN_FROM = 0.8
WARNED = 60
"""Taken from the rank of a cause that a warning tells, where an error names a mechanism: that one comes first."""

ERROR_OF_NCCL = "NCCL WARN"
"""How NCCL writes its errors; it has no other level for them."""

WAITED = frozenset({FailureClass.NETWORK_TIMEOUT, FailureClass.QUEUE_SATURATION})
"""What somebody sees who waits for an answer: it explains nothing that the other side warned of."""

RIVAL_FROM = 60
"""A cause of this precedence and more names a mechanism (ranks.toml); below are words of ordinary logs too."""

ELSEWHERE_PENALTY = 25
"""Taken from the precedence of a signature that belongs to another platform than the one given."""

OF_A_CLIENT = "none_client_side"
"""What is to be done about what a client did wrong."""

RULE_LINES = 60
MAX_RULE_CHARS = 65_536
"""What a rule may look at around the decisive line."""

MOST_EVIDENCE = 6

_OF_CODE = re.compile(
    r"\b(?:NameError|UnboundLocalError): "
    r"|\bTypeError: .{1,200}(?:unexpected keyword|multiple values for argument"
    r"|missing \d{1,2} required|positional argument)"
    r"|\bAttributeError: (?:module|type object) "
)
"""Exceptions of code that does not go together, or that a model's files call with what it does not know."""


def judge(
    lines: Sequence[str],
    sightings: Sequence[Sighting],
    words: StatusWords,
    *,
    whole_log: bool,
    platform: str | None,
    servers: Sequence[str] = (),
) -> Finding:
    """Choose among sightings; for the arguments see :meth:`agent.failures.match.matcher.Matcher.classify`."""
    own = without_other_programs(lines, sightings)
    besides = len(own) < len(sightings)
    sightings, loud, in_documents = evident(lines, own)
    timeline = timeline_of(lines, sightings, loud, servers)
    sightings = without_doubtful_interrupts(lines, sightings, timeline)
    all_troubles = [s for s in sightings if s.signature.role in TROUBLE]
    troubles = standing(lines, sightings, timeline)
    doubtful = resting_on_others(lines, sightings, timeline, troubles)
    sightings = _without_repeated(lines, sightings)
    sightings = [s for s in sightings if s.signature.role is not Role.BENIGN or _may_speak(s, lines, timeline)]
    calm_at = {s.index for s in sightings if s.signature.role in {Role.BENIGN, Role.PHASE}}
    calm_at |= {s.index for s in all_troubles if s.signature.role is not Role.HINT} - {
        s.index for s in troubles if s.signature.role is not Role.HINT
    }
    troubles = [
        s for s in troubles if s.signature.role is not Role.HINT or not (s.index in calm_at or is_mild(lines, s.index))
    ]
    if any(s.signature.needs_silence for s in troubles) and not (
        whole_log and _silent(lines, sightings, troubles, timeline)
    ):
        troubles = [s for s in troubles if not s.signature.needs_silence]
    unresolved = _unresolved(lines, loud, sightings, timeline)
    past = {s.index for s in troubles if got_past(s, lines, timeline)}
    others = [s for s in troubles if s.index not in past]
    ended = any(ends_server(lines, index) and not timeline.served_after(index) for index in unresolved)
    if past and (ended or any(s.signature.role is Role.CAUSE for s in others)):
        past, troubles = set(), others
    found = _first(lines, troubles, timeline, whole_log=whole_log, platform=platform)
    if found is not None and (past or ended or (found.evidence[0].index, found.signature) in doubtful):
        found = replace(found, certain=False)  # it went on, and may be well; or something else ended it
    if found is not None and not found.benign:
        return found
    if ended:
        return _ended(lines, unresolved)
    open_end = bool(unresolved) or ends_in_a_guess(lines, sightings, timeline) or ends_dead(lines, sightings, timeline)
    # Nobody knows where a document ends and a log begins.
    open_end = open_end or ends_in_traceback(lines) or bool(in_documents and standing(lines, in_documents, timeline))
    down = who_is_down(lines, sightings, timeline, words)
    calm = None if open_end or down else found or harmless(lines, loud, sightings, timeline, words, besides=besides)
    return calm or _unknown(lines, down)


def _without_repeated(lines: Sequence[str], sightings: Sequence[Sighting]) -> list[Sighting]:
    """The sightings without those that are harmless only once, where they stand again for the same pod."""
    often = Counter((s.signature.id, pods_of(lines[s.index])) for s in sightings if s.signature.once)
    return [s for s in sightings if not s.signature.once or often[s.signature.id, pods_of(lines[s.index])] == 1]


def _may_speak(sighting: Sighting, lines: Sequence[str], timeline: Timeline) -> bool:
    """Whether a harmless phrase may speak for its line.

    For one that calls itself fatal only if it says so itself. For an error of the platform, for a line that says that
    something died, and for an exception, only if it says whose trouble it is: a note may stand in the words of an
    exception that ended the process. For one below the frames of a program or of an engine's loop
    nothing speaks: whoever raised it, the process is gone. A script's words speak only above a start, and those of a
    client only where a server is not still starting: it has no clients then.
    """
    entry = sighting.signature
    starting = timeline.marker_at(sighting.index) in STARTING and not timeline.only_begun(sighting.index)
    if OF_A_CLIENT in entry.fixes and starting:
        return False
    said = body_of(lines[sighting.index])
    if entry.phase is Phase.CONFIG and not timeline.begins_below(sighting.index):
        return False
    if entry.claims_line:
        return not is_raised(said)
    if entry.precedence < SETTLED_FROM and (
        is_raised(said) or is_platforms_error(said) or tells_an_end(said) or ends_traceback(lines, sighting.index)
    ):
        return False
    return not is_fatal(said) and not ends_process(lines, sighting.index)


def _unresolved(
    lines: Sequence[str], loud: Sequence[int], sightings: Sequence[Sighting], timeline: Timeline
) -> list[int]:
    """Positions of lines that say of themselves that they are errors, that no rule knows, and that were not overcome.

    An error of a start that completed is overcome; one while serving is not, whatever was served afterwards, for
    nobody knows whom it struck. A traceback, and the line that announces it, are known by the exception that ends it.
    """
    return [
        index
        for index in unknown_of(lines, loud, sightings, timeline)
        if is_error_line(body_of(lines[index]))
        and not (is_stopped(lines, index, timeline) or timeline.started_after(index))
        and not is_of_a_script(lines, index, timeline)
    ]


def _silent(
    lines: Sequence[str], sightings: Sequence[Sighting], troubles: Sequence[Sighting], timeline: Timeline
) -> bool:
    """Whether nothing speaks of trouble before a stop but lines that ask for silence, their like, their tracebacks."""
    asking = [s for s in troubles if s.signature.needs_silence]
    at = {s.index for s in asking}
    like = {s.signature.failure_class for s in asking}
    if any(timeline.marker_at(index - 1) not in STARTING for index in at):  # the line itself may be the stop
        return False
    known = {s.index for s in sightings}
    others = {s.index for s in troubles if s.index not in at and s.signature.failure_class not in like}
    loud = {index for index, line in enumerate(lines) if index not in known and looks_like_failure(line)}
    return all(timeline.stopped(index) or heads_traceback_of(lines, index, at, timeline) for index in others | loud)


def _first(
    lines: Sequence[str], troubles: Sequence[Sighting], timeline: Timeline, *, whole_log: bool, platform: str | None
) -> Finding | None:
    """The strongest trouble that its rule does not take back; one that it calls harmless where no other stands."""
    found: Finding | None = None
    calm_found: Finding | None = None
    while troubles and (found is None or found.benign or found.class_ is FailureClass.UNKNOWN):
        found = _trouble(lines, troubles, timeline, whole_log=whole_log, platform=platform)
        calm_found = calm_found or (found if found.benign else None)
        hints = set() if calm_found is None else {s.signature.id for s in troubles if s.signature.role is Role.HINT}
        troubles = [s for s in troubles if s.signature.id not in {found.signature, *hints}]
    return calm_found if found is None or found.class_ is FailureClass.UNKNOWN else found


def _trouble(
    lines: Sequence[str], troubles: Sequence[Sighting], timeline: Timeline, *, whole_log: bool, platform: str | None
) -> Finding:
    ranked = _ranked(lines, troubles, platform)
    best = ranked[0]
    entry = best.signature
    phase = entry.phase if entry.phase is not Phase.UNKNOWN else timeline.phase_at(best.index)
    begun = phase is Phase.CONFIG and timeline.only_begun(best.index)
    decisive = Phase.UNKNOWN if begun and entry.class_by_phase else phase
    own = timeline.own_lines(best.index)
    found = measure(entry.fields, own, best.index)
    ruling = _ruling(own, best, ranked, timeline, fields=found.values, phase=decisive, platform=platform)
    class_ = ruling.class_ or entry.class_by_phase.get(decisive, entry.failure_class)
    fixes = ruling.fixes or entry.fixes_by_phase.get(decisive, entry.fixes)
    confidence = entry.confidence if ruling.confidence is None else ruling.confidence
    if entry.class_by_phase and decisive is Phase.UNKNOWN:
        confidence = min(confidence, 0.55)
    if entry.role is Role.CAUSE and _is_only_mild(best, ranked, lines):
        confidence = min(confidence, 0.75)  # it did not alarm its own program
    if _has_rivals(ranked, timeline) or (entry.failure_class in BROKEN and is_refusal(lines, best.index)):
        confidence = min(confidence, 0.7)
    consequence = entry.role is not Role.CAUSE and not entry.needs_silence
    if consequence and not whole_log:
        confidence = min(confidence, 0.6)
    return Finding(
        class_=class_,
        signature=entry.id,
        confidence=confidence,
        certain=entry.certain
        and confidence >= CERTAIN_FROM
        and class_ is not FailureClass.UNKNOWN
        and _may_be_the_servers(best, ranked, lines),
        benign=class_ is FailureClass.BENIGN,
        fields=found.values,
        field_lines=found.lines,
        evidence=_evidence(lines, ranked),
        fix_actions=fixes,
        phase=phase,
        consequence=consequence,
        hint=entry.role is Role.HINT,
        precedence=entry.precedence,
        also_seen=tuple(dict.fromkeys(s.signature.id for s in ranked if s.signature.id != entry.id))[:8],
    )


def _may_be_the_servers(best: Sighting, ranked: Sequence[Sighting], lines: Sequence[str]) -> bool:
    """Whether a line of the first signature names the server, or nobody, where its lines name whom they are about.

    A line that tells how its program went on may be of a trouble that is over; one that explains may be of none.
    """
    if says_it_passed(lines[best.index]) or may_only_describe(lines[best.index]):
        return False
    if not best.signature.names_subject:
        return True
    same = (s.index for s in ranked if s.signature.id == best.signature.id)
    return any(subject_at(lines, index) in {Subject.SERVER, Subject.NOBODY} for index in same)


def _ranked(lines: Sequence[str], troubles: Sequence[Sighting], platform: str | None) -> list[Sighting]:
    """The troubles, strongest first, then the earlier."""
    causes = [s for s in troubles if s.signature.role is Role.CAUSE]
    warned = {s.index for s in causes if _is_warned(lines, s.index)}
    warned |= {s.index for s in causes if may_only_describe(lines[s.index])}
    aloud = [s.signature for s in causes if s.index not in warned and s.signature.precedence >= RIVAL_FROM]
    known = any(entry.failure_class not in WAITED for entry in aloud)

    def place(sighting: Sighting) -> tuple[int, int]:
        mild = known and sighting.signature.role is Role.CAUSE and sighting.index in warned
        return WARNED * mild - _rank(sighting.signature, platform), sighting.index

    return sorted(troubles, key=place)


def _has_rivals(ranked: Sequence[Sighting], timeline: Timeline) -> bool:
    """Whether a known cause that means another class is as strong as the first, or stands elsewhere: one is first."""
    best, entry = ranked[0], ranked[0].signature
    answered = {entry.failure_class, *entry.becomes, *entry.class_by_phase.values()}

    def rivals(other: Sighting) -> bool:
        strong, class_ = other.signature.precedence, other.signature.failure_class
        as_strong = strong >= entry.precedence and class_ is not entry.failure_class
        by_phase, phase = other.signature.class_by_phase, timeline.phase_at(other.index)
        meant = by_phase.values() if phase is Phase.UNKNOWN else [by_phase.get(phase)]
        may_agree = class_ in answered or entry.failure_class in meant
        return as_strong or (strong >= RIVAL_FROM and not may_agree and other.index != best.index)

    return any(other.signature.role is Role.CAUSE and rivals(other) for other in ranked[1:])


def _is_only_mild(noted: Sighting, ranked: Sequence[Sighting], lines: Sequence[str]) -> bool:
    """Whether a note or a warning says it, and no error line says the same: the same signature stands in none."""
    same = (s.index for s in ranked if s.signature.id == noted.signature.id)
    mild = is_note(body_of(lines[noted.index])) or _is_warned(lines, noted.index)
    return mild and not any(is_error_line(body_of(lines[index])) for index in same)


def _is_warned(lines: Sequence[str], index: int) -> bool:
    said = body_of(lines[index])
    return ERROR_OF_NCCL not in said and (is_warning(said) or continues_warning(lines, index))


def _ruling(
    lines: Sequence[str],
    best: Sighting,
    ranked: Sequence[Sighting],
    timeline: Timeline,
    *,
    fields: Mapping[str, Value],
    phase: Phase,
    platform: str | None,
) -> Ruling:
    if not best.signature.decide:
        return Ruling()
    server = timeline.server(best.index)
    alike = [s.index for s in ranked if s.signature.id == best.signature.id and timeline.server(s.index) == server]
    last_of_each = {rank_of(lines[index]): index for index in sorted(alike)}
    around = range(max(0, best.index - RULE_LINES), min(len(lines), best.index + RULE_LINES))
    return RULES[best.signature.decide](
        RuleInput(
            line=_own(lines[best.index], server).lower(),
            text="\n".join(_own(lines[i], server) for i in around)[:MAX_RULE_CHARS].lower(),
            fields=fields,
            phase=phase,
            also=frozenset(sighting.signature.id for sighting in ranked),
            platform=platform,
            repeats=len(alike),
            progress_after=all(timeline.progress_after(index) for index in last_of_each.values()),
        )
    )


def _own(line: str, server: str) -> str:
    """The line as its program wrote it, where a collector names the server before it."""
    return body_of(line) if server else line


def _rank(entry: Signature, platform: str | None) -> int:
    elsewhere = bool(platform and entry.platforms and platform not in entry.platforms)
    base = 1000 if entry.role is Role.CAUSE else 0  # a cause explains every consequence, whatever their numbers
    base += 500 if entry.needs_silence else 0  # nothing else spoke
    return base + entry.precedence - (ELSEWHERE_PENALTY if elsewhere else 0)


def _evidence(lines: Sequence[str], ranked: Sequence[Sighting]) -> tuple[EvidenceLine, ...]:
    first = ranked[0].signature.id
    order = [s.index for s in ranked if s.signature.id == first][:2] + [s.index for s in ranked]
    return tuple(
        EvidenceLine(index=index, text=lines[index].strip()[:MAX_EVIDENCE_CHARS])
        for index in list(dict.fromkeys(order))[:MOST_EVIDENCE]
    )


def _ended(lines: Sequence[str], unresolved: Sequence[int]) -> Finding:
    """An exception that no rule knows ended a process of the server: that is known, and no more.

    That its code does not go together is known where the exception can mean nothing else; another version may.
    """
    of_code = any(_OF_CODE.search(lines[index]) and ends_server(lines, index) for index in unresolved)
    look, other = "collect_container_logs", ("upgrade_version", "none_code_bug")
    return replace(
        _unknown(lines),
        class_=FailureClass.ENGINE_DEAD,
        signature="unknown_exception",
        confidence=0.4,
        consequence=True,
        fix_actions=(*other, look) if of_code else (look, "restart", "upgrade_version"),
    )


def _unknown(lines: Sequence[str], first: Sequence[int] = ()) -> Finding:
    """Nothing is known; ``first`` are positions of lines that tell more than those that look as if they did."""
    telling = list(dict.fromkeys([*first[:MOST_EVIDENCE], *most_informative_lines(list(lines))]))[:MOST_EVIDENCE]
    return Finding(
        class_=FailureClass.UNKNOWN,
        signature=None,
        confidence=UNKNOWN_CONFIDENCE if telling else 0.0,
        certain=False,
        benign=False,
        evidence=tuple(EvidenceLine(index=index, text=lines[index].strip()[:MAX_EVIDENCE_CHARS]) for index in telling),
        fix_actions=("collect_container_logs",),
    )
