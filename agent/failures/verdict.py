"""Of all signatures in a text, which is the first cause, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.failures.case import Case, Ruling
from agent.failures.finding import EvidenceLine, Finding, Value
from agent.failures.measure import measure
from agent.failures.phases import STARTING, Mark, Timeline
from agent.failures.rules import RULES
from agent.failures.signature import TROUBLE, FailureClass, Phase, Role, Signature
from agent.failures.text import is_note, is_warning, looks_loud, only_notes, telling_lines

UNKNOWN_CONFIDENCE = 0.2
CERTAIN_FROM = 0.8
ELSEWHERE_PENALTY = 25
"""Taken from the precedence of a signature that belongs to another platform than the one given."""

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


def judge(lines: Sequence[str], sightings: Sequence[Sighting], *, whole_log: bool, platform: str | None) -> Finding:
    """Choose among sightings; see :meth:`agent.failures.match.Matcher.classify` for the arguments."""
    timeline = Timeline(
        [
            Mark(index=sighting.index, phase=sighting.signature.phase, near=sighting.signature.near)
            for sighting in sightings
            if sighting.signature.role is Role.PHASE
        ]
    )
    troubles = [sighting for sighting in sightings if sighting.signature.role in TROUBLE]
    troubles = [s for s in troubles if not _survived(s, timeline) and not _ordered_stop(s, timeline)]
    known = {sighting.index for sighting in sightings if sighting.signature.role in {Role.BENIGN, Role.PHASE}}
    troubles = [s for s in troubles if s.signature.role is not Role.HINT or not _mild(lines[s.index], s.index in known)]
    if timeline.ended_up and all(sighting.signature.role is Role.HINT for sighting in troubles):
        troubles = []
    if any(s.signature.needs_silence for s in troubles) and not (
        whole_log and _silent(lines, sightings, troubles, timeline)
    ):
        troubles = [s for s in troubles if not s.signature.needs_silence]
    if troubles:
        return _trouble(lines, troubles, timeline, whole_log=whole_log, platform=platform)
    return _harmless(lines, sightings, timeline) or _unknown(lines)


def _mild(line: str, known: bool) -> bool:  # noqa: FBT001 - one of three reasons
    """Whether no guess is taken from a line: it is known as harmless, or calls itself a note or a warning."""
    return known or is_note(line) or is_warning(line)


def _survived(sighting: Sighting, timeline: Timeline) -> bool:
    """Whether a trouble of start-up was overcome: its run became ready afterwards."""
    entry = sighting.signature
    overcome = entry.role in {Role.CAUSE, Role.HINT} and entry.phase is not Phase.SERVING
    return overcome and timeline.came_up_after(sighting.index)


def _ordered_stop(sighting: Sighting, timeline: Timeline) -> bool:
    """Whether an engine ended because somebody stopped the server: what follows a signal is no trouble."""
    entry = sighting.signature
    ended = entry.role in {Role.CONSEQUENCE, Role.HINT} and entry.failure_class is FailureClass.ENGINE_DEAD
    return ended and timeline.marker_at(sighting.index) is Phase.STOPPING


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
    loud = {index for index, line in enumerate(lines) if index not in known and looks_loud(line)}
    return all(timeline.marker_at(index) is Phase.STOPPING for index in others | loud)


def _trouble(
    lines: Sequence[str], troubles: Sequence[Sighting], timeline: Timeline, *, whole_log: bool, platform: str | None
) -> Finding:
    ranked = sorted(troubles, key=lambda sighting: (-_rank(sighting.signature, platform), sighting.index))
    best = ranked[0]
    entry = best.signature
    phase = entry.phase if entry.phase is not Phase.UNKNOWN else timeline.phase_at(best.index)
    class_ = entry.class_by_phase.get(phase, entry.failure_class)
    found = measure(entry.fields, lines, best.index)
    ruling = _ruling(lines, best, ranked, timeline, fields=found.values, phase=phase, platform=platform)
    class_ = ruling.class_ or class_
    fixes = ruling.fixes or entry.fixes_by_phase.get(phase, entry.fixes)
    rivals = {
        rival.signature.failure_class
        for rival in ranked[1:]
        if rival.signature.role is Role.CAUSE
        and rival.signature.precedence >= entry.precedence
        and rival.signature.failure_class is not entry.failure_class
    }
    confidence = entry.confidence if ruling.confidence is None else ruling.confidence
    if entry.class_by_phase and phase is Phase.UNKNOWN:
        confidence = min(confidence, 0.55)
    if rivals:
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
    around = lines[max(0, best.index - RULE_LINES) : best.index + RULE_LINES]
    return RULES[best.signature.decide](
        Case(
            line=lines[best.index].lower(),
            text="\n".join(around)[:MAX_RULE_CHARS].lower(),
            fields=fields,
            phase=phase,
            also=frozenset(sighting.signature.id for sighting in ranked),
            platform=platform,
            repeats=sum(1 for sighting in ranked if sighting.signature.id == best.signature.id),
            progress_after=timeline.progress_after(
                max(sighting.index for sighting in ranked if sighting.signature.id == best.signature.id)
            ),
        )
    )


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


def _harmless(lines: Sequence[str], sightings: Sequence[Sighting], timeline: Timeline) -> Finding | None:
    known = {sighting.index for sighting in sightings if sighting.signature.role is not Role.HINT}
    loud = [index for index, line in enumerate(lines) if index not in known and looks_loud(line)]
    scary = [sighting for sighting in sightings if sighting.signature.role is Role.BENIGN]
    survived = [sighting for sighting in sightings if sighting.signature.role is Role.CAUSE]
    notes = only_notes(list(lines))
    if not scary and not timeline.is_progress and not notes:
        return None
    if loud and not timeline.ended_up and not notes:
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
        fix_actions=("none_benign",),
        phase=timeline.marker_at(len(lines)),
        precedence=best.signature.precedence if best else 0,
    )


def _calm(best: Sighting | None, timeline: Timeline, *, loud: bool) -> float:
    if loud:
        return 0.7
    if best is not None:
        return best.signature.confidence
    return 0.85 if timeline.is_progress else 0.5


def _unknown(lines: Sequence[str]) -> Finding:
    telling = telling_lines(list(lines))
    return Finding(
        class_=FailureClass.UNKNOWN,
        signature=None,
        confidence=UNKNOWN_CONFIDENCE if telling else 0.0,
        certain=False,
        benign=False,
        evidence=tuple(EvidenceLine(index=index, text=lines[index].strip()[:MAX_EVIDENCE_CHARS]) for index in telling),
        fix_actions=("collect_container_logs",),
    )
