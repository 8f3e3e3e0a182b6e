"""What one incident adds to the metrics: from its state and its timeline, the same whoever counts it, and when."""

from collections import Counter
from collections.abc import Sequence
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


class Observed(Value):
    """What an incident adds; nothing of it ever becomes less or is taken back.

    Attributes:
        took: Seconds of each part of its life that is over.
        class_: The failure class as it was known at the first end; None of one that is open.
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

    took: dict[str, float] = Field(default_factory=dict)
    class_: str | None = None
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
    end = next((event for event in entered if event.phase in ENDINGS), None)
    spent = incident.model_request.settled_spend if incident.model_request is not None else None
    ends = {name: phases[phase] for phase, name in ENDINGS.items() if phases[phase]}
    if phases[Phase.ESCALATED]:
        ends.pop("closed", None)
    return Observed(
        took=_took(incident, timeline, ended=end is not None),
        class_=end.cause or "unknown" if end is not None else None,
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


def _took(incident: Incident, timeline: Sequence[Event], *, ended: bool) -> dict[str, float]:
    took = durations(incident, timeline)
    parts = {
        DETECTION: took.detect_s if ended else None,  # an earlier sign may still come
        FIRST_DIAGNOSIS: took.diagnose_s,
        PLAN: took.plan_s,
        DECISION: took.decide_s,
        RECOVERY: took.recover_s,
    }
    return {part: seconds for part, seconds in parts.items() if seconds is not None}
