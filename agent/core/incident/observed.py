"""What one incident adds to the metrics: from its state and its timeline, the same whoever counts it, and when."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import Field

from agent.core.incident.durations import durations
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.incident.statistics import verdicts_of
from agent.core.value import Value

ENDINGS: Final = {
    Phase.RESOLVED: "resolved",
    Phase.SELF_RECOVERED: "self_recovered",
    Phase.ESCALATED: "escalated",
    Phase.CLOSED: "closed",
}
ANSWERS: Final = {Phase.APPROVED: "approved", Phase.REJECTED: "rejected", Phase.EXPIRED: "expired"}
DETECTION, FIRST_DIAGNOSIS, PLAN, DECISION, RECOVERY = "detection", "first_diagnosis", "plan", "decision", "recovery"


class Took(Value):
    """A part of an incident's life that is over; ``class_`` is the failure class as it was known then."""

    part: str
    class_: str
    seconds: float


class Observed(Value):
    """What an incident adds; nothing of it ever becomes less or is taken back.

    Attributes:
        took: Each part at most once.
        ends: How often it came to each end; one that was closed after its escalation is not counted again.
        verdicts: Verdicts of its changes.
        answers: Answers to its plans, EXPIRED among them.
        plans: Plans that were made.
        refused: Approved plans that were refused at the last look.
        roll_backs: Changes that were undone.
        model_calls: Questions to the model, without what is reserved for one under way.
        tokens_in: Tokens of the questions, and of answers from before the two were told apart.
        tokens_out: Tokens of the answers.
        model_s: Seconds of waiting for the model.
    """

    took: tuple[Took, ...] = ()
    ends: dict[str, int] = Field(default_factory=dict)
    verdicts: dict[str, int] = Field(default_factory=dict)
    answers: dict[str, int] = Field(default_factory=dict)
    plans: int = 0
    refused: int = 0
    roll_backs: int = 0
    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    model_s: float = 0.0


def observed(incident: Incident, timeline: Sequence[Event]) -> Observed:
    """Return what an incident adds.

    Args:
        incident: Its present state; no change request.
        timeline: Its whole timeline, in order.
    """
    entered = _entered(timeline)
    phases = Counter(event.phase for event in entered)
    spent = incident.model_request.settled_spend if incident.model_request is not None else None
    ends = {name: phases[phase] for phase, name in ENDINGS.items() if phases[phase]}
    if phases[Phase.ESCALATED]:
        ends.pop("closed", None)
    return Observed(
        took=tuple(_took(incident, timeline, entered)),
        ends=ends,
        verdicts={str(verdict): count for verdict, count in Counter(verdicts_of(incident)).items()},
        answers={name: phases[phase] for phase, name in ANSWERS.items() if phases[phase]},
        plans=phases[Phase.PLANNED],
        refused=phases[Phase.REFUSED],
        roll_backs=phases[Phase.ROLLED_BACK],
        model_calls=spent.calls if spent is not None else 0,
        tokens_in=spent.tokens - spent.tokens_out if spent is not None else 0,
        tokens_out=spent.tokens_out if spent is not None else 0,
        model_s=spent.seconds if spent is not None else 0.0,
    )


def _entered(timeline: Sequence[Event]) -> tuple[Event, ...]:
    """The lines with which a phase began; later ones of the same phase say what happened in it."""
    found: list[Event] = []
    for event in timeline:
        if event.kind is None and (not found or found[-1].phase is not event.phase):
            found.append(event)
    return tuple(found)


def _took(incident: Incident, timeline: Sequence[Event], entered: Sequence[Event]) -> Iterator[Took]:
    took = durations(incident, timeline)
    first: dict[Phase, Event] = {}
    for each in entered:
        first.setdefault(each.phase, each)
    answer = min((first[p] for p in (Phase.APPROVED, Phase.REJECTED) if p in first), key=lambda e: e.at, default=None)
    parts = (
        (DETECTION, took.detect_s, first.get(Phase.DIAGNOSED)),  # before it nobody knows a class
        (FIRST_DIAGNOSIS, took.diagnose_s, first.get(Phase.DIAGNOSED)),
        (PLAN, took.plan_s, first.get(Phase.PLANNED)),
        (DECISION, took.decide_s, answer),
        (RECOVERY, took.recover_s, first.get(incident.phase)),
    )
    for part, seconds, event in parts:
        if seconds is not None and event is not None:
            yield Took(part=part, class_=event.cause or "unknown", seconds=seconds)
