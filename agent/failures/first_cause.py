"""Of all signatures in a text, which is the first cause, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.failures.finding import EvidenceLine, Finding, Value
from agent.failures.measure import measure
from agent.failures.rules.rule_input import RuleInput, Ruling
from agent.failures.rules.rules import RULES
from agent.failures.signature import TROUBLE, FailureClass, Phase, Proof, Role, Signature
from agent.failures.text.log_text import (
    TRACEBACK,
    failure_candidates,
    is_continued,
    is_error_line,
    is_fatal,
    is_note,
    is_warning,
    looks_like_failure,
    most_informative_lines,
    only_info,
)
from agent.failures.text.no_evidence import is_no_evidence
from agent.failures.text.phases import LOOK_AHEAD_LINES, STARTING, PhaseMark, Timeline
from agent.failures.text.streams import body_of, pods_of

UNKNOWN_CONFIDENCE = 0.2
CERTAIN_FROM = 0.8
ELSEWHERE_PENALTY = 25
"""Taken from the precedence of a signature that belongs to another platform than the one given."""

NEVER = frozenset({FailureClass.GPU_HARDWARE_FAULT, FailureClass.HOST_OOM, FailureClass.ENGINE_DEAD})
"""A broken card, a kill, a memory limit and a dead engine are not survived, whatever is served afterwards."""

PER_REQUEST = frozenset(
    {
        FailureClass.CONTEXT_LENGTH_EXCEEDED,
        FailureClass.TOOL_PARSER_ERROR,
        FailureClass.CHAT_TEMPLATE_ERROR,
        FailureClass.QUEUE_SATURATION,
    }
)
"""Troubles of some requests: that others are served is part of the picture."""

PASSING = frozenset({FailureClass.STARTUP_PROBE_FAILED, FailureClass.PORT_NOT_LISTENING, FailureClass.ENGINE_HANG})
"""Consequences that a start or a server may get over; the others tell of an end."""

PORT_NOT_OPEN = ("Unhealthy", "connection refused")
"""Words of the kubelet's event of one try; other platforms report when they have given up."""

TELLS_AN_END_FROM = 41
"""Consequences of this precedence and more say how a process ended (agent/catalogue/failures/ranks.toml)."""

AFTER_A_STOP = PASSING | {FailureClass.ENGINE_DEAD, FailureClass.QUEUE_SATURATION}
"""What a probe or the platform reports about a server that was asked to end."""

RULE_LINES = 60
MAX_RULE_CHARS = 65_536
"""What a rule may look at around the decisive line."""

MOST_EVIDENCE = 6
MAX_EVIDENCE_CHARS = 500


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A signature that stands in the line at ``index``."""

    index: int
    signature: Signature


def judge(
    lines: Sequence[str],
    sightings: Sequence[Sighting],
    *,
    whole_log: bool,
    platform: str | None,
    servers: Sequence[str] = (),
) -> Finding:
    """Choose among sightings; for the arguments see :meth:`agent.failures.match.matcher.Matcher.classify`."""
    sightings = [s for s in sightings if s.signature.role not in TROUBLE or not is_no_evidence(lines, s.index)]
    loud = [index for index in failure_candidates(lines) if not is_no_evidence(lines, index)]
    asked_at = [s.index for s in sightings if s.signature.proof is Proof.ASKED]
    troubled = sorted({*loud, *asked_at, *(s.index for s in sightings if s.signature.role in TROUBLE)})
    marks = [_mark(s) for s in sightings if s.signature.role is Role.PHASE]
    timeline = Timeline(marks, lines, troubled, servers, probed=_probed(sightings, lines))
    deaths = [s.index for s in sightings if _is_end(s.signature) and not _ordered_stop(s, timeline)]
    all_troubles = [s for s in sightings if s.signature.role in TROUBLE]
    asked = _Asked(asked_at, lines, timeline)
    troubles = [
        s
        for s in all_troubles
        if not _over(s, timeline, deaths) and not _ordered_stop(s, timeline) and not asked.covers(s)
    ]
    sightings = [s for s in sightings if s.signature.role is not Role.BENIGN or _may_speak(s, lines)]
    harmless = {s.index for s in sightings if s.signature.role in {Role.BENIGN, Role.PHASE}}
    harmless |= {s.index for s in all_troubles if s.signature.role is not Role.HINT} - {
        s.index for s in troubles if s.signature.role is not Role.HINT
    }
    troubles = [
        s for s in troubles if s.signature.role is not Role.HINT or not _mild(lines[s.index], s.index in harmless)
    ]
    if any(s.signature.needs_silence for s in troubles) and not (
        whole_log and _silent(lines, sightings, troubles, timeline)
    ):
        troubles = [s for s in troubles if not s.signature.needs_silence]
    found = None
    while troubles and (found is None or found.class_ is FailureClass.UNKNOWN):
        found = _trouble(lines, troubles, timeline, whole_log=whole_log, platform=platform)
        troubles = [s for s in troubles if s.signature.id != found.signature]
    found = None if found is not None and found.class_ is FailureClass.UNKNOWN else found
    if found is not None and not found.benign:
        return found
    if _unresolved(lines, loud, sightings, timeline):
        return _unknown(lines)
    return found or _harmless(lines, loud, sightings, timeline) or _unknown(lines)


def _probed(sightings: Sequence[Sighting], lines: Sequence[str]) -> frozenset[int]:
    """Positions of the kubelet's events of single tries at a port that is not open yet, where they tell of no end."""
    troubles = [s for s in sightings if s.signature.role in {Role.CAUSE, Role.CONSEQUENCE}]
    others = {s.index for s in troubles if not _is_observed_probe(s.signature)}
    tries = {s.index for s in troubles if all(word in lines[s.index] for word in PORT_NOT_OPEN)}
    return frozenset(tries - others)


def _is_observed_probe(entry: Signature) -> bool:
    by_a_probe = entry.failure_class in PASSING - {FailureClass.ENGINE_HANG}
    return by_a_probe and entry.role is Role.CONSEQUENCE and entry.precedence < TELLS_AN_END_FROM


def _may_speak(sighting: Sighting, lines: Sequence[str]) -> bool:
    """Whether a harmless phrase may speak for its line: for one that calls itself fatal only if it says so itself."""
    return sighting.signature.claims_line or not is_fatal(body_of(lines[sighting.index]))


def _is_end(entry: Signature) -> bool:
    return entry.role is not Role.HINT and entry.failure_class in NEVER and not entry.passing


def _mark(sighting: Sighting) -> PhaseMark:
    entry = sighting.signature
    return PhaseMark(index=sighting.index, phase=entry.phase, near=entry.near, proof=entry.proof)


def _mild(line: str, known: bool) -> bool:  # noqa: FBT001 - one of three reasons
    """Whether no guess is taken from a line: it is known as harmless, or calls itself a note or a warning."""
    return known or is_note(line) or is_warning(line)


def _over(sighting: Sighting, timeline: Timeline, deaths: Sequence[int]) -> bool:
    """Whether a trouble was survived (docs/adr/0010-when-a-failure-is-over.md).

    A trouble of start-up by the end of that very start, or by its tokens; one of serving by a completed request or a
    token counter that moved, unless the engine died in between; hardware, kills, memory limits and dead engines never.
    A request that was refused stays refused. A queue may be full while tokens come; it is over when nobody waits.
    """
    entry = sighting.signature
    if entry.role is Role.CONSEQUENCE and entry.failure_class is FailureClass.QUEUE_SATURATION and entry.fields:
        return timeline.drained_after(sighting.index)
    passing = entry.passing or entry.failure_class in PASSING
    lasting = entry.role is Role.CONSEQUENCE or (entry.role is not Role.HINT and entry.failure_class in NEVER)
    if lasting and not passing:
        return False
    if entry.phase is not Phase.SERVING and timeline.started_after(sighting.index):
        return True
    if entry.role is Role.HINT or entry.failure_class in PER_REQUEST or not timeline.served_after(sighting.index):
        return False
    began = timeline.phase_at(sighting.index)
    later = [death for death in deaths if death > sighting.index and timeline.same_start(sighting.index, death)]
    return began in STARTING - {Phase.CONFIG} or (Phase.SERVING in {entry.phase, began} and not later)


def _ordered_stop(sighting: Sighting, timeline: Timeline) -> bool:
    """Whether an engine ended because somebody stopped the server: what follows a signal is no trouble."""
    entry = sighting.signature
    ended = entry.role in {Role.CONSEQUENCE, Role.HINT} and entry.failure_class is FailureClass.ENGINE_DEAD
    return ended and timeline.stopped(sighting.index)


class _Asked:
    """The pods that the platform was asked to end: what it reports of that end afterwards is no failure."""

    def __init__(self, at: Sequence[int], lines: Sequence[str], timeline: Timeline) -> None:
        self._lines, self._timeline = lines, timeline
        self._at = [(index, pods_of(lines[index])) for index in at]

    def covers(self, sighting: Sighting) -> bool:
        """Whether a probe's failure, or an end, follows the request to end the same pod before another start."""
        entry = sighting.signature
        if entry.role is not Role.CONSEQUENCE or entry.failure_class not in AFTER_A_STOP:
            return False
        pods = pods_of(self._lines[sighting.index])
        return any(
            at <= sighting.index and named == pods and self._timeline.no_start_between(at, sighting.index)
            for at, named in self._at
        )


def _unresolved(
    lines: Sequence[str], loud: Sequence[int], sightings: Sequence[Sighting], timeline: Timeline
) -> list[int]:
    """Positions of lines that say of themselves that they are errors, that no rule knows, and that were not overcome.

    An error of a start that completed is overcome; one while serving is not, whatever was served afterwards, for
    nobody knows whom it struck. A traceback, and the line that announces it, are known by the exception that ends it.
    """
    known = {s.index for s in sightings if s.signature.role is not Role.HINT and not s.signature.near}
    return [
        index
        for index in loud
        if index not in known
        and is_error_line(body_of(lines[index]))
        and _end_of_traceback(lines, index, timeline) not in known
        and not timeline.stopped(index)
        and not timeline.started_after(index)
    ]


def _end_of_traceback(lines: Sequence[str], head: int, timeline: Timeline) -> int | None:
    """The line that ends the traceback at or right below a line: the first that is neither a frame nor its source."""
    server = timeline.server(head)
    first = next((at for at in (head, head + 1) if at < len(lines) and TRACEBACK in lines[at]), len(lines))
    for index in range(first + 1, min(len(lines), head + LOOK_AHEAD_LINES)):
        if timeline.server(index) == server and not is_continued(body_of(lines[index])):
            return index
    return None


def _silent(
    lines: Sequence[str], sightings: Sequence[Sighting], troubles: Sequence[Sighting], timeline: Timeline
) -> bool:
    """Whether nothing but the lines that ask for silence, and their like, speaks of trouble before a stop."""
    asking = [s for s in troubles if s.signature.needs_silence]
    at = {s.index for s in asking}
    like = {s.signature.failure_class for s in asking}
    if any(timeline.marker_at(index - 1) not in STARTING for index in at):  # the line itself may be the stop
        return False
    known = {s.index for s in sightings}
    others = {s.index for s in troubles if s.index not in at and s.signature.failure_class not in like}
    loud = {index for index, line in enumerate(lines) if index not in known and looks_like_failure(line)}
    return all(timeline.stopped(index) for index in others | loud)


def _trouble(
    lines: Sequence[str], troubles: Sequence[Sighting], timeline: Timeline, *, whole_log: bool, platform: str | None
) -> Finding:
    ranked = sorted(troubles, key=lambda sighting: (-_rank(sighting.signature, platform), sighting.index))
    best = ranked[0]
    entry = best.signature
    phase = entry.phase if entry.phase is not Phase.UNKNOWN else timeline.phase_at(best.index)
    begun = phase is Phase.CONFIG and timeline.only_begun(best.index)
    decisive = Phase.UNKNOWN if begun and entry.class_by_phase else phase
    class_ = entry.class_by_phase.get(decisive, entry.failure_class)
    found = measure(entry.fields, timeline.own_lines(best.index), best.index)
    ruling = _ruling(lines, best, ranked, timeline, fields=found.values, phase=decisive, platform=platform)
    class_ = ruling.class_ or class_
    fixes = ruling.fixes or entry.fixes_by_phase.get(decisive, entry.fixes)
    confidence = entry.confidence if ruling.confidence is None else ruling.confidence
    if entry.class_by_phase and decisive is Phase.UNKNOWN:
        confidence = min(confidence, 0.55)
    if _has_rivals(ranked):
        confidence = min(confidence, 0.7)
    consequence = entry.role is not Role.CAUSE and not entry.needs_silence
    if consequence and not whole_log:
        confidence = min(confidence, 0.6)
    return Finding(
        class_=class_,
        signature=entry.id,
        confidence=confidence,
        certain=entry.certain and confidence >= CERTAIN_FROM and class_ is not FailureClass.UNKNOWN,
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


def _has_rivals(ranked: Sequence[Sighting]) -> bool:
    """Whether a cause of another class is as strong as the first."""
    best = ranked[0].signature
    return any(
        rival.signature.role is Role.CAUSE
        and rival.signature.precedence >= best.precedence
        and rival.signature.failure_class is not best.failure_class
        for rival in ranked[1:]
    )


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
    around = range(max(0, best.index - RULE_LINES), min(len(lines), best.index + RULE_LINES))
    return RULES[best.signature.decide](
        RuleInput(
            line=_own(lines[best.index], server).lower(),
            text="\n".join(_own(lines[i], server) for i in around if not server or timeline.server(i) == server)[
                :MAX_RULE_CHARS
            ].lower(),
            fields=fields,
            phase=phase,
            also=frozenset(sighting.signature.id for sighting in ranked),
            platform=platform,
            repeats=len(alike),
            progress_after=timeline.progress_after(max(alike)),
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


def _harmless(
    lines: Sequence[str], loud: Sequence[int], sightings: Sequence[Sighting], timeline: Timeline
) -> Finding | None:
    known = {s.index for s in sightings if s.signature.role is not Role.HINT and not s.signature.near}
    loud = [index for index in loud if index not in known]
    scary = [sighting for sighting in sightings if sighting.signature.role is Role.BENIGN]
    survived = [sighting for sighting in sightings if sighting.signature.role is Role.CAUSE]
    notes = only_info(list(lines))
    calm = (scary or timeline.is_progress) and all(_calmed(index, timeline) for index in loud)
    if not notes and not calm:
        return None
    best = max(scary, key=lambda sighting: (sighting.signature.precedence, -sighting.index), default=None)
    markers = [sighting for sighting in sightings if sighting.signature.role is Role.PHASE]
    shown = [*scary[:3], *survived[:2]] or markers[-3:]
    return Finding(
        class_=FailureClass.BENIGN,
        signature=best.signature.id if best else "healthy_progress" if timeline.is_progress else "only_notes",
        confidence=_calm(best, timeline, loud=bool(loud)),
        certain=not loud and (best.signature.certain if best else timeline.is_progress),
        benign=True,
        evidence=tuple(EvidenceLine(index=s.index, text=lines[s.index].strip()[:MAX_EVIDENCE_CHARS]) for s in shown),
        fix_actions=best.signature.fixes if best else ("none_benign",),
        phase=timeline.last_phase,
        precedence=best.signature.precedence if best else 0,
    )


def _calmed(index: int, timeline: Timeline) -> bool:
    """Whether a loud line that is no error by its own word led to nothing: the start or the serving went on."""
    stopped = timeline.marker_at(index) is Phase.STOPPING
    return stopped or timeline.started_after(index) or timeline.served_after(index)


def _calm(best: Sighting | None, timeline: Timeline, *, loud: bool) -> float:
    if loud:
        return 0.7
    if best is not None:
        return best.signature.confidence
    return 0.85 if timeline.is_progress else 0.5


def _unknown(lines: Sequence[str]) -> Finding:
    telling = most_informative_lines(list(lines))
    return Finding(
        class_=FailureClass.UNKNOWN,
        signature=None,
        confidence=UNKNOWN_CONFIDENCE if telling else 0.0,
        certain=False,
        benign=False,
        evidence=tuple(EvidenceLine(index=index, text=lines[index].strip()[:MAX_EVIDENCE_CHARS]) for index in telling),
        fix_actions=("collect_container_logs",),
    )
