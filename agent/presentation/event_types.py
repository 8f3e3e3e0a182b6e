"""The events that are told to others: which step of an incident or a request sends which one."""

from typing import TYPE_CHECKING, Final

from agent.core.incident.phase import EventKind, Phase

if TYPE_CHECKING:  # settings name these events, and are read by commands that know no incident
    from agent.core.incident.incident import Event, Incident

TYPE_OF: Final[dict[Phase | EventKind, str]] = {
    Phase.DIAGNOSED: "incident.opened",
    Phase.ASKED: "plan.proposed",
    Phase.APPROVED: "plan.decided",
    Phase.REJECTED: "plan.decided",
    Phase.EXPIRED: "plan.expired",
    Phase.SUPERSEDED: "plan.withdrawn",
    Phase.REFUSED: "plan.refused",
    Phase.APPLYING: "plan.applied",
    Phase.ROLLED_BACK: "plan.rolled_back",
    Phase.RESOLVED: "incident.resolved",
    Phase.SELF_RECOVERED: "incident.resolved",
    Phase.ESCALATED: "incident.escalated",
    Phase.CLOSED: "incident.closed",
    EventKind.ACKNOWLEDGED: "incident.acknowledged",
    EventKind.ASSIGNED: "incident.assigned",
    EventKind.COMMENTED: "incident.commented",
    EventKind.VOTE_GIVEN: "plan.vote_given",
    EventKind.VOTE_WITHDRAWN: "plan.vote_withdrawn",
    EventKind.REMINDED: "plan.reminded",
    EventKind.UNACKNOWLEDGED: "incident.unacknowledged",
}
REQUEST_TYPE_OF: Final[dict[Phase | EventKind, str]] = {
    Phase.OPEN: "request.made",
    Phase.WITHDRAWN: "request.withdrawn",
    EventKind.SUPERSEDED: "request.superseded",
    Phase.REFUSED: "request.refused",
    Phase.RESOLVED: "request.resolved",
    Phase.ESCALATED: "request.escalated",
    Phase.CLOSED: "request.closed",
}
"""Of a change that a person asked for; what stands in neither table sends no event."""
EVENT_TYPES: Final = frozenset({*TYPE_OF.values(), *REQUEST_TYPE_OF.values()})


def type_of(incident: "Incident", event: "Event", before: "Event | None") -> str | None:
    """Return the type of the event that a line of the timeline sends, or None where it sends none.

    Args:
        incident: Whose timeline it is.
        event: The line.
        before: The line before it; None for the first.
    """
    said = TYPE_OF if incident.request is None else TYPE_OF | REQUEST_TYPE_OF
    if event.kind is not None:
        return said.get(event.kind)
    if before is not None and before.phase is event.phase:
        return None
    if incident.request is not None and event.phase is Phase.REFUSED and event.plan is not None:
        return TYPE_OF[Phase.REFUSED]  # it had a plan, which was approved
    return said.get(event.phase)
