"""What is left to do after an incident: from its record first, then from the catalogue of its failure class."""

from collections.abc import Iterator, Mapping, Sequence

from agent.core.change.execution import Change, present_change
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Plan
from agent.failures.follow_up import FollowUp, FollowUpKind
from agent.presentation.report.postmortem import ActionItem


def loses(plan: Plan) -> bool:
    """Whether a plan takes anything away from what ran before."""
    return bool(plan.takes_away) and not plan.takes_away.startswith("loses nothing")


def action_items(
    incident: Incident, timeline: Sequence[Event], catalogue: Mapping[str, tuple[FollowUp, ...]]
) -> tuple[ActionItem, ...]:
    """Return the actions, those that this incident left undone first.

    Args:
        incident: Its present state.
        timeline: Its whole timeline.
        catalogue: Actions by failure class; a class that is not in it, such as an unknown one, adds none.
    """
    own = (*_finish(incident), *_respond(timeline))
    found = (*own, *(catalogue.get(incident.cause, ()) if incident.request is None else ()))
    return tuple(ActionItem(kind=item.kind.value, text=item.text) for item in found)


def _finish(incident: Incident) -> Iterator[FollowUp]:
    for text in _undone(incident):
        yield FollowUp(kind=FollowUpKind.FINISH, text=text)


def _undone(incident: Incident) -> Iterator[str]:
    plan = incident.plan
    change = present_change(incident.execution)
    if incident.phase is Phase.ESCALATED:
        yield "Take the incident over: the agent does nothing more here."
    if change is Change.PUTTING_BACK:
        yield "Check what the service runs now: it is not confirmed that the change was put back."
    if plan is not None and not plan.by_person and plan.difference and change is Change.APPLIED:
        yield (
            "Make the change where the service is deployed from (Terraform, Helm, a pipeline); the next deployment "
            "takes it away otherwise."
        )
    if incident.phase is Phase.RESOLVED and plan is not None and loses(plan):
        yield f"Decide whether the service can stay as it is now: {plan.takes_away}."
    if incident.diagnosis is not None and incident.diagnosis.changes:
        yield f"Review the change that came before it: {incident.diagnosis.changes[0]}."
    if incident.ended and incident.cause == "unknown":
        yield "Find the cause, and report the log line that names it, so that the next one is recognised."


def _respond(timeline: Sequence[Event]) -> Iterator[FollowUp]:
    if any(event.phase is Phase.EXPIRED for event in timeline):
        yield FollowUp(
            kind=FollowUpKind.RESPOND,
            text="Nobody answered a plan in time: check who is on call, and how they are told.",
        )
