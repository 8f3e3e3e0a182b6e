"""An earlier incident of the same cause: what was done about it, and whether that helped."""

from typing import Final

from pydantic import AwareDatetime

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.value import Value
from agent.presentation.phase_words import Tone, tone_of
from agent.presentation.plan_title import as_sentence, plan_title
from agent.presentation.standing import class_words

_ENDED: Final = {
    Phase.SELF_RECOVERED: "It recovered by itself.",
    Phase.ESCALATED: "It was handed to a person.",
}


class SimilarIncident(Value):
    """One earlier incident of the same cause.

    Attributes:
        helped: Whether what was done ended it; None where it is not over or nobody knows.
        says: What was done and what came of it.
    """

    id: str
    service: str
    opened_at: AwareDatetime
    helped: bool | None
    tone: Tone
    says: str


def what_helped(incident: Incident) -> SimilarIncident:
    """Return what an earlier incident tells about its cause."""
    helped, says = _outcome(incident)
    return SimilarIncident(
        id=incident.id,
        service=incident.service,
        opened_at=incident.opened_at,
        helped=helped,
        tone=tone_of(incident.phase),
        says=says,
    )


def _outcome(incident: Incident) -> tuple[bool | None, str]:
    title = plan_title(incident.plan) if incident.plan is not None else ""
    if incident.phase is Phase.RESOLVED:
        return True, f"This helped: {as_sentence(title)}" if title else "It was resolved."
    if incident.phase in _ENDED:
        failed = sum(remedy.applied is True for remedy in incident.remedies)
        tried = f" {failed} {'change was' if failed == 1 else 'changes were'} tried before." if failed else ""
        reason = f" {as_sentence(incident.ended_why)}" if incident.ended_why else ""
        return incident.phase is Phase.SELF_RECOVERED or None, f"{_ENDED[incident.phase]}{tried}{reason}"
    if incident.ended:
        return None, f"It ended: {class_words(incident.phase.value.lower())}."
    return None, f"It is still open. Proposed: {as_sentence(title)}" if title else "It is still open."
