"""Plain words for people: what each phase means, who says so, and how far along an incident is."""

from datetime import datetime
from enum import StrEnum

from agent.core.diagnosis import Voice
from agent.core.incident import Incident
from agent.core.phase import Phase
from agent.core.plan import Rollout
from agent.core.value import Value


class Tone(StrEnum):
    """How a state is coloured; colour never stands alone, the word is always there."""

    WAITING = "waiting"
    MOVING = "moving"
    GOOD = "good"
    BAD = "bad"
    QUIET = "quiet"


class PhaseWords(Value):
    """A phase for people: a short label and a sentence."""

    label: str
    says: str
    tone: Tone


_P = Phase
_WORDS: dict[Phase, tuple[str, str, Tone]] = {
    _P.OPEN: ("Looking", "Something was heard; the cause is being looked for.", Tone.MOVING),
    _P.DIAGNOSED: ("Diagnosed", "The first word is in; a plan is being worked out.", Tone.MOVING),
    _P.PLANNED: ("Planned", "A plan is ready and about to be offered.", Tone.MOVING),
    _P.ASKED: ("Waits for you", "A plan waits for an answer. Nothing has been changed.", Tone.WAITING),
    _P.APPROVED: ("Approved", "The last look before the change. Nothing has been changed yet.", Tone.MOVING),
    _P.APPLYING: ("Applying", "The change is being applied.", Tone.MOVING),
    _P.VERIFYING: ("Verifying", "The change is in; whether it helped is being measured.", Tone.MOVING),
    _P.RESOLVED: ("Resolved", "It works again, and that was measured.", Tone.GOOD),
    _P.ROLLING_BACK: ("Rolling back", "The change did not help; the state before it is being put back.", Tone.MOVING),
    _P.ROLLED_BACK: ("Rolled back", "The state before the change is back.", Tone.BAD),
    _P.REFUSED: ("Refused", "It was approved, but something differed at the last look. Nothing was changed.", Tone.BAD),
    _P.REJECTED: ("Rejected", "A person said no. Nothing was changed.", Tone.QUIET),
    _P.EXPIRED: ("Expired", "Nobody answered in time. Nothing was changed.", Tone.BAD),
    _P.SUPERSEDED: ("Withdrawn", "More was learned, so the plan was withdrawn. Nothing was changed.", Tone.QUIET),
    _P.ESCALATED: ("Yours now", "We do no more here: a person has it, with everything that is known.", Tone.BAD),
    _P.SELF_RECOVERED: ("Recovered", "It is healthy again without any change of ours.", Tone.GOOD),
}

_BY_PERSON_SAYS: dict[Phase, str] = {
    _P.VERIFYING: "A person does this; we watch for a healthy sign. We change nothing.",
    _P.APPROVED: "A person took this on; we begin to watch.",
    _P.RESOLVED: "It is healthy again, and that was seen.",
}

VOICES: dict[Voice, str] = {
    Voice.RULES: "the rules, without a model",
    Voice.MODEL: "Gemma; no rule recognised it",
    Voice.BOTH: "the rules and Gemma agree",
    Voice.DIFFER: "the rules and Gemma differ",
}

ROLLOUTS: dict[Rollout, str] = {
    Rollout.IN_PLACE: "in place: the new revision takes over as soon as it is ready",
    Rollout.STAGED: "staged: a new revision without traffic first, then the traffic",
    Rollout.BY_PERSON: "by a person; we only watch",
}


class StepState(StrEnum):
    """Where one step of the way stands."""

    DONE = "done"
    NOW = "now"
    TODO = "todo"


class WayStep(Value):
    """One step of the way from the first sign to the end."""

    label: str
    state: StepState


_WAY: tuple[tuple[str, frozenset[Phase]], ...] = (
    ("Heard", frozenset({_P.OPEN})),
    ("Diagnosed", frozenset({_P.DIAGNOSED, _P.PLANNED})),
    ("Asked", frozenset({_P.ASKED, _P.REJECTED, _P.EXPIRED, _P.SUPERSEDED})),
    ("Approved", frozenset({_P.APPROVED, _P.REFUSED})),
    ("Applied", frozenset({_P.APPLYING})),
    ("Verified", frozenset({_P.VERIFYING, _P.ROLLING_BACK, _P.ROLLED_BACK})),
)


def words_of(incident: Incident, now: datetime) -> PhaseWords:
    """Return the words for where an incident stands; a plan nobody may answer any more does not wait."""
    label, says, tone = _WORDS[incident.phase]
    if incident.phase is Phase.ASKED and incident.plan is not None and now >= incident.plan.expires_at:
        label, says, tone = _WORDS[Phase.EXPIRED]
    if incident.plan is not None and incident.plan.by_person:
        says = _BY_PERSON_SAYS.get(incident.phase, says)
    return PhaseWords(label=label, says=says, tone=tone)


def label_of(phase: Phase) -> str:
    """Return the short label of a phase."""
    return _WORDS[phase][0]


def tone_of(phase: Phase) -> Tone:
    """Return the tone of a phase."""
    return _WORDS[phase][2]


def way(incident: Incident) -> tuple[WayStep, ...]:
    """Return the steps of the way, with the one that the incident is at; empty for one that has ended."""
    if incident.ended:
        return ()
    at = next(n for n, (_, phases) in enumerate(_WAY) if incident.phase in phases)
    states = [StepState.DONE if n < at else StepState.NOW if n == at else StepState.TODO for n in range(len(_WAY))]
    return tuple(WayStep(label=label, state=state) for (label, _), state in zip(_WAY, states, strict=True))


def moves(incident: Incident, now: datetime) -> bool:
    """Whether the page changes soon without anybody doing anything; a plan that waits does not."""
    waits = incident.phase is Phase.ASKED and incident.plan is not None and now < incident.plan.expires_at
    return not incident.ended and not waits


def class_words(class_: str) -> str:
    """Return a failure class for people."""
    return class_.replace("_", " ")
