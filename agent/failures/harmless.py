"""A text without a failure: what shows that it is harmless, and how sure that is."""

from collections.abc import Mapping, Sequence

from agent.failures.asked_to_end import Asked
from agent.failures.finding import MAX_EVIDENCE_CHARS, EvidenceLine, Finding
from agent.failures.recovered import AT_THE_PORT, is_calmed, is_queue, is_stopped
from agent.failures.signature import PLAIN_TROUBLE, FailureClass, Phase, Proof, Role, Sighting
from agent.failures.text.answers import Answers
from agent.failures.text.ends import container_that_ended, ended_without_fault, says_it_ended
from agent.failures.text.log_text import is_bare, warns_of_failure
from agent.failures.text.no_evidence import GOES_ON, counts_none, says_it_passed
from agent.failures.text.notes import is_mild_of_vllm, last_entry, notes_of, only_info
from agent.failures.text.phases import Timeline
from agent.failures.text.pod_starts import NODE_LOST, is_waiting
from agent.failures.text.queues import Queues
from agent.failures.text.reports_down import reports_down
from agent.failures.text.reports_up import is_foreign, reports_up
from agent.failures.text.starts import STARTING, UP
from agent.failures.text.streams import body_of, server_of
from agent.failures.text.subjects import Subject, names_server, subject_of
from agent.failures.text.tracebacks import end_of_traceback
from agent.failures.text.words import StatusWords

_PROMPTS, _ALL_PROMPTS = "Processed prompts:", "Processed prompts: 100%"
"""What vLLM's ``LLM.generate`` shows: a program without a server that ends below the whole count has done its work."""

_MANY_WAITS, _NEARLY_ALL = 6, 0.9
"""vLLM logs every ten seconds for what it waits: six lines are a minute."""

SETTLED_FROM = 60
"""Harmless entries of this precedence and more say whose trouble a line is (agent/catalogue/failures/ranks.toml)."""


def unknown_of(
    lines: Sequence[str], loud: Sequence[int], sightings: Sequence[Sighting], timeline: Timeline
) -> list[int]:
    """The loud lines that no rule knows, neither by themselves nor by the end of the traceback that they announce."""
    known = {s.index for s in sightings if s.signature.role is not Role.HINT and not s.signature.near}
    return [at for at in loud if at not in known and end_of_traceback(lines, at, timeline) not in known]


def who_is_down(
    lines: Sequence[str], sightings: Sequence[Sighting], timeline: Timeline, words: StatusWords
) -> list[int]:
    """The lines that no rule knows and that say that somebody is down who is not well again below.

    A line that says how its program goes on is none. A start proves nothing of a line above its banner.
    """
    begun = max(
        (s.index for s in sightings if s.signature.phase is Phase.CONFIG and s.signature.role is Role.PHASE), default=-1
    )

    def is_over(index: int) -> bool:
        if is_stopped(lines, index, timeline) or timeline.served_after(index):
            return True
        return index > begun and timeline.started_after(index)

    down = reports_down(lines, _known(sightings), words, is_over=is_over)
    return [at for at in down if not says_it_passed(lines[at])]


def _known(sightings: Sequence[Sighting]) -> set[int]:
    """Positions of the lines whose words a rule knows; an ordinary note may hold others besides."""
    said = [s for s in sightings if s.signature.role is not Role.HINT]
    return {s.index for s in said if s.signature.role is not Role.BENIGN or s.signature.precedence >= SETTLED_FROM}


def harmless(
    lines: Sequence[str],
    loud: Sequence[int],
    sightings: Sequence[Sighting],
    timeline: Timeline,
    words: StatusWords,
    *,
    besides: bool,
) -> Finding | None:
    """A harmless text; ``besides`` for one that tells a trouble of another program.

    Not with certainty where nobody says whose queue drained or whose probe failed, which of several servers wrote, what
    became of a pod that has what it waited for, what a container did that was started, whether a start came to its end,
    or what the words of a program mean that no rule knows.
    """
    loud = unknown_of(lines, loud, sightings, timeline)
    scary = [sighting for sighting in sightings if sighting.signature.role is Role.BENIGN]
    survived = [sighting for sighting in sightings if sighting.signature.role is Role.CAUSE]
    notes = only_info(lines) and not _waits_alone(lines)
    notes = notes and (timeline.is_progress or _notes_work(lines, sightings, words))
    calm = (scary or timeline.is_progress) and all(is_calmed(lines, index, timeline) for index in loud)
    goes_on = not (notes or calm or loud or survived or timeline.is_progress) and reports_up(lines, words)
    if not (notes or calm or goes_on):
        return None
    best = max(scary, key=lambda sighting: (sighting.signature.precedence, -sighting.index), default=None)
    markers = [sighting for sighting in sightings if sighting.signature.role is Role.PHASE]
    doubt = besides or loud or goes_on or any(is_queue(s.signature) and not timeline.server(s.index) for s in sightings)
    doubt = doubt or any(is_waiting(lines[s.index]) for s in survived) or any(NODE_LOST in line for line in lines)
    over = [s for s in sightings if s.signature.role in PLAIN_TROUBLE]
    doubt = doubt or any("STARTUP" in lines[s.index] and "probe failed" in lines[s.index] for s in over)
    doubt = doubt or any(timeline.may_be_of_two(s.index, perhaps=True) for s in over)
    ported = (s.index for s in over if s.signature.failure_class in AT_THE_PORT)
    doubt = doubt or any(timeline.marker_at(index) is Phase.UNKNOWN for index in ported)
    answers = Answers(lines, timeline)
    doubt = doubt or answers.any_refused
    doubt = doubt or timeline.last_phase in STARTING or _ends_unknown(lines, sightings)
    doubt = doubt or _ends_unasked(lines, timeline)
    doubt = doubt or (not timeline.is_progress and any(s.signature.proof is Proof.STARTED for s in sightings))
    doubt = doubt or Queues([], [], lines, timeline).doubts_one_server
    shown = [*scary[:3], *survived[:2]] or markers[-3:]
    return Finding(
        class_=FailureClass.BENIGN,
        signature=best.signature.id if best else _unspoken(timeline, goes_on=goes_on),
        confidence=_calm(best, timeline, loud=bool(loud)),
        certain=not doubt and (best.signature.certain if best else timeline.is_progress),
        benign=True,
        evidence=tuple(EvidenceLine(index=s.index, text=lines[s.index].strip()[:MAX_EVIDENCE_CHARS]) for s in shown),
        fix_actions=best.signature.fixes if best else ("none_benign",),
        phase=timeline.last_phase,
        precedence=best.signature.precedence if best else 0,
    )


def _notes_work(lines: Sequence[str], sightings: Sequence[Sighting], words: StatusWords) -> bool:
    """Whether no note tells a failure, and the last one of each program tells of what it ordinarily does.

    A note of which nobody knows what it means may be the first and last word of a failure.
    """
    if _notes_a_failure(lines, sightings, words):
        return False
    known = {s.index for s in sightings if s.signature.role is not Role.HINT}
    last: dict[str, int] = {server_of(line): at for at, line in enumerate(lines) if line.strip()}
    return all(
        at in known or _is_no_news(body_of(lines[at])) or _is_work(last_entry(lines[: at + 1]), words)
        for at in last.values()
    )


def _waits_alone(lines: Sequence[str]) -> bool:
    """Whether a text says over and over that something waits, and nothing else: it may load, or stand still."""
    said = [line for line in lines if line.strip()]
    waits = sum("Waiting for " in line for line in said)
    return waits >= _MANY_WAITS and waits >= _NEARLY_ALL * len(said)


def _is_work(entry: Sequence[str], words: StatusWords) -> bool:
    """Whether an entry tells of ordinary work, and not of an end or a try that may be out of order."""
    said = [body_of(line) for line in entry]
    return any(map(words.acts, said)) and not any(map(words.unsettled, said))


def _notes_a_failure(lines: Sequence[str], sightings: Sequence[Sighting], words: StatusWords) -> bool:
    """Whether a note that no rule knows says that something went wrong, or says it in letters that nobody knows.

    Of somebody who was down and is well again it does not.
    """
    known = {s.index for s in sightings if s.signature.role is not Role.HINT}
    unknown = (body_of(lines[at]) for at in sorted(notes_of(lines) - known))
    news = (line for line in unknown if not _is_no_news(line))
    return any(is_foreign(line) or (words.wrong(line) and words.down_at(line) is None) for line in news)


def _is_no_news(line: str) -> bool:
    return is_mild_of_vllm(line) or GOES_ON.search(line) is not None or counts_none(line)


def _unspoken(timeline: Timeline, *, goes_on: bool) -> str:
    if timeline.is_progress:
        return "healthy_progress"
    return "reports_up" if goes_on else "only_notes"


def ends_dead(lines: Sequence[str], sightings: Sequence[Sighting], timeline: Timeline) -> bool:
    """Whether words below all that a server did, or that went wrong, say that a process ended which nobody had stopped.

    Below them stand at most notes, and answers to probes. The words of one container are those that compose writes of
    it, above what others go on to say. One that ended with 0, or with no word of a fault, was asked to, or had done its
    work, unless it is a server that had begun.
    """
    said = [s for s in sightings if s.signature.role is not Role.HINT]
    notes = {s.index for s in said if s.signature.role is Role.BENIGN or s.signature.proof is Proof.ANSWERS}
    works = {timeline.server(at): at for at in sorted(s.index for s in said if s.index not in notes)}
    last = max(works.values(), default=-1)
    below = (at for at in range(min(works.values(), default=-1) + 1, len(lines)) if at not in notes)
    ends = (at for at in below if says_it_ended(lines[at]) and works.get(timeline.server(at), last) < at)
    if any(not is_stopped(lines, at, timeline) for at in ends):
        return True
    if any(
        says_it_ended(line) and not timeline.server(at) and timeline.leaves_one_silent(at)
        for at, line in enumerate(lines)
    ):
        return True
    if any(timeline.is_last_of(container_that_ended(line), at) for at, line in enumerate(lines)):
        return True
    if timeline.last_phase is Phase.UNKNOWN:  # nothing is known of it but that it ended
        stops = any(s.signature.phase is Phase.STOPPING for s in sightings)
        asked = Asked(sightings, lines, timeline)
        return not stops and any(_is_of_a_server(line) and not asked.may_be_for(at) for at, line in enumerate(lines))
    if timeline.last_phase not in {*UP, *STARTING} or timeline.ended_after_last_mark:
        return False
    done = _with_all_prompts(lines, works, timeline)
    ends = (at for at in range(max(last, 0), len(lines)) if _is_servers_end(lines, at, timeline))
    return any(timeline.server(at) not in done for at in ends)


def _with_all_prompts(lines: Sequence[str], works: Mapping[str, int], timeline: Timeline) -> set[str]:
    """The programs whose last count of prompts is whole and the last that they did; none where a server was up."""
    if any("Application startup complete" in line for line in lines):
        return set()
    counts = {timeline.server(at): at for at, line in enumerate(lines) if _PROMPTS in line}
    return {name for name, at in counts.items() if _ALL_PROMPTS in lines[at] and at >= works.get(name, 0)}


def _is_of_a_server(line: str) -> bool:
    """Whether a line says that a container or a process ended with 0 which has no name, or that of a model server."""
    whose = ended_without_fault(line) if "exited with code 0" in line else None
    return whose is not None and (not whose or names_server(whose))


def _ends_unasked(lines: Sequence[str], timeline: Timeline) -> bool:
    """Whether a line says that something ended, with whatever code, that nobody had stopped above it."""
    ends = (at for at, line in enumerate(lines) if says_it_ended(line) or ended_without_fault(line) is not None)
    return any(not is_stopped(lines, at, timeline) for at in ends)


def _is_servers_end(lines: Sequence[str], index: int, timeline: Timeline) -> bool:
    """Whether a line says that what may be the server ended without a fault, and nobody had stopped it."""
    whose = ended_without_fault(lines[index])
    if whose is None or is_stopped(lines, index, timeline):
        return False
    return subject_of(lines[index]) in {Subject.SERVER, Subject.NOBODY} and timeline.may_name(whose)


def _ends_unknown(lines: Sequence[str], sightings: Sequence[Sighting]) -> bool:
    """Whether the last words are of no rule, and have no level or warn of a failure, or are not certainly harmless.

    Nobody knows then what followed.
    """
    said = [s for s in sightings if s.signature.role is not Role.HINT]
    known = max((s.index for s in said), default=-1)
    last = [s.signature for s in said if s.index == known and s.signature.role is Role.BENIGN]
    if any(entry.precedence >= SETTLED_FROM for entry in last) and not any(entry.certain for entry in last):
        return True
    return any(is_bare(line) or (warns_of_failure(line) and not GOES_ON.search(line)) for line in lines[known + 1 :])


def _calm(best: Sighting | None, timeline: Timeline, *, loud: bool) -> float:
    if loud:
        return 0.7
    unspoken = 0.85 if timeline.is_progress else 0.5
    return unspoken if best is None else best.signature.confidence
