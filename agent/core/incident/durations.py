"""How long an incident took to be detected, diagnosed, decided and over: from its signals and its timeline."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import LIVE
from agent.core.value import Value

RECORDED_AFTER: Final = timedelta(days=7)  # Pub/Sub keeps a message for that long at most
_ANSWERED = frozenset({Phase.APPROVED, Phase.REJECTED})
_OVER = frozenset({Phase.RESOLVED, Phase.SELF_RECOVERED})


class Durations(Value):
    """Seconds of each part of an incident's life; None where it has not come to it, or nobody knows.

    Attributes:
        detect_s: From the first sign of trouble at its source to the opening of the incident; None of a recording, and
            where the two clocks contradict each other.
        diagnose_s: From the opening to the first diagnosis.
        plan_s: From the opening to the first plan.
        decide_s: From the first question to the first answer of a person.
        recover_s: From the opening to its end in health; None of an incident that did not end so.
    """

    detect_s: float | None = None
    diagnose_s: float | None = None
    plan_s: float | None = None
    decide_s: float | None = None
    recover_s: float | None = None


def durations(incident: Incident, timeline: Sequence[Event]) -> Durations:
    """Return how long each part took.

    Args:
        incident: Its present state.
        timeline: Its whole timeline, in order.
    """
    first: dict[Phase, datetime] = {}
    for event in timeline:
        if event.kind is None:
            first.setdefault(event.phase, event.at)
    opened = incident.opened_at
    answered = min((at for phase, at in first.items() if phase in _ANSWERED), default=None)
    over = first.get(incident.phase) if incident.phase in _OVER else None
    return Durations(
        detect_s=None if is_recorded(incident) else _between(first_sign(incident), opened),
        diagnose_s=_between(opened, first.get(Phase.DIAGNOSED)),
        plan_s=_between(opened, first.get(Phase.PLANNED)),
        decide_s=_between(first.get(Phase.ASKED), answered),
        recover_s=_between(opened, over),
    )


def first_sign(incident: Incident) -> datetime:
    """Return when the trouble showed first at its source; of a recording, when that was recorded."""
    return min((signal.at for signal in incident.correlated), default=incident.opened_at)


def is_recorded(incident: Incident) -> bool:
    """Whether its signals are a recording: a replay, or a rehearsal whose signals are older than any queue keeps."""
    return incident.run != LIVE or incident.opened_at - first_sign(incident) > RECORDED_AFTER


def _between(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()
