"""A change request for people: who asks for what, and where it stands."""

from collections.abc import Callable
from typing import Final

from agent.core.change.execution import Change, present_change
from agent.core.change.request import ChangeRequest
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.presentation.measured import how_checked


def asker_of(request: ChangeRequest) -> str:
    """Return who asks, with a word where the channel did not prove the name."""
    return request.asker + ("" if request.verified else " (not verified)")


def request_title(request: ChangeRequest) -> str:
    """Return one line: that a change was asked for, and by whom."""
    return f"change requested by {asker_of(request)}"


def request_reason(request: ChangeRequest) -> str:
    """Return who asks for a change, and why, in a sentence."""
    return f"{asker_of(request)} asks for a change: {request.why}"


def _open(incident: Incident) -> str:
    waits_for = incident.request.waits_for if incident.request is not None else None
    if waits_for is not None:
        return f"It waits until {waits_for} is over; then its plan is made."
    return "Its plan is being made."


def _resolved(incident: Incident) -> str:
    return f"The change works: {how_checked(incident.verification)}. The change stays in place."


def _rolled_back(incident: Incident) -> str:
    if present_change(incident.execution) is Change.PUT_BACK:
        return "The state before the change is back."
    return "The change was never made, so there is nothing to put back."


REQUEST_LABELS: Final[dict[Phase, str]] = {Phase.OPEN: "Requested"}
REQUEST_SENTENCES: Final[dict[Phase, Callable[[Incident], str]]] = {
    Phase.OPEN: _open,
    Phase.RESOLVED: _resolved,
    Phase.ROLLED_BACK: _rolled_back,
    Phase.REFUSED: lambda _: "The request was refused.",
    Phase.REJECTED: lambda _: "The request was rejected.",
    Phase.WITHDRAWN: lambda _: "The request was taken back before anybody approved it.",
    Phase.CLOSED: lambda _: "The request is closed.",
}
"""What differs from the sentences of an incident, which was not asked for and gets another plan."""
