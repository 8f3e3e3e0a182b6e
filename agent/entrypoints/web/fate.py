"""What became of a plan: read from the incident's timeline, so that it holds after the next plan has come."""

from pydantic import AwareDatetime

from agent.core.incident import Event, Incident
from agent.core.phase import Phase
from agent.core.plan import Plan
from agent.core.value import Value

_ENDS_ASKING = frozenset({Phase.APPROVED, Phase.REJECTED, Phase.EXPIRED, Phase.SUPERSEDED, Phase.SELF_RECOVERED})


class Fate(Value):
    """How the asking ended, or None where the plan still waits.

    Attributes:
        by: Who ended it: a person's name for an answer, ``agent`` otherwise.
        verified: Whether the channel proved the name; None where nobody answered or it is no longer known.
        why: The words given with it.
    """

    phase: Phase
    at: AwareDatetime
    by: str
    verified: bool | None = None
    why: str = ""
    channel: str = ""


def fate_of(plan: Plan, incident: Incident, timeline: tuple[Event, ...]) -> Fate | None:
    """Return what became of a plan.

    Args:
        plan: Any plan of the incident.
        incident: The incident as it is now.
        timeline: Its whole timeline.
    """
    decision = incident.decision
    if decision is not None and decision.plan == plan.id:
        phase = Phase.APPROVED if decision.answer == "approve" else Phase.REJECTED
        return Fate(
            phase=phase,
            at=decision.at,
            by=decision.shown,
            verified=decision.verified,
            why=decision.why,
            channel=decision.channel,
        )
    made = next((n for n, event in enumerate(timeline) if _made(plan, event)), None)
    if made is None:
        return None
    for event in timeline[made:]:
        if event.phase in _ENDS_ASKING:
            return Fate(phase=event.phase, at=event.at, by=event.by)
    return None


def _made(plan: Plan, event: Event) -> bool:
    return event.phase is Phase.PLANNED and event.at == plan.made_at and event.what.startswith(f"plan {plan.id}:")
