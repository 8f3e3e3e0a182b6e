"""A change request for people: who asks for what, and why."""

from agent.core.change.request import ChangeRequest
from agent.core.decision.decision import shown_name


def asker_of(request: ChangeRequest) -> str:
    """Return who asks, with a word where the channel did not prove the name."""
    return shown_name(request.asker, verified=request.verified)


def request_title(request: ChangeRequest) -> str:
    """Return one line: that a change was asked for, and by whom."""
    return f"change requested by {asker_of(request)}"


def request_reason(request: ChangeRequest) -> str:
    """Return who asks for a change, and why, in a sentence."""
    return f"{asker_of(request)} asks for a change: {request.why}"
