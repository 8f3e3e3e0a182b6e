"""What the agent has changed so far: read from the effects and the remedies, never from the phase."""

from agent.core.change.execution import Change, present_change
from agent.core.change.verification import Verdict
from agent.core.incident.incident import TAKEN_BACK, Incident, Remedy

_TRIED = frozenset({*map(str, Verdict), TAKEN_BACK})


def earlier_remedies(incident: Incident) -> tuple[Remedy, ...]:
    """Return what was tried in this incident before the present plan, and carried out."""
    own = [r for r in incident.remedies if r.incident == incident.id and r.ended in _TRIED]
    plan = incident.plan
    carried_out = incident.execution is not None and plan is not None and incident.execution.plan == plan.id
    return tuple(r for r in own if not (carried_out and plan is not None and r.proposal == plan.proposal))


def changed_so_far(incident: Incident) -> str:
    """Say in one or two sentences what the agent has changed, and what of it stands."""
    plan, now = incident.plan, present_change(incident.execution)
    said = [*_earlier(earlier_remedies(incident))]
    if now is Change.NONE:
        by_hand = plan is not None and plan.by_person and incident.execution is not None
        nothing = "The agent has changed nothing." if by_hand else "Nothing has been changed."
        if any(r.applied is not False for r in earlier_remedies(incident)):
            nothing = "Nothing else has been changed."
        elif said:
            nothing = "The agent has changed nothing."
        return " ".join((*said, nothing))
    present = _PRESENT[now].replace("The change", "The latest change", 1) if said else _PRESENT[now]
    return " ".join((*said, present))


_PRESENT = {
    Change.INTENDED: "The change is ordered; it may have been made already.",
    Change.STARTED: "The change was made and is being rolled out.",
    Change.FAILED: "The change was made, and its rollout failed; it has not been put back.",
    Change.APPLIED: "The change is in place.",
    Change.PUTTING_BACK: "The change was made; it is not confirmed that it was put back.",
    Change.PUT_BACK: "The change was made and put back.",
}


def _earlier(remedies: tuple[Remedy, ...]) -> list[str]:
    """What was tried before; of remedies from before the effects were kept only that they were tried."""
    if not remedies:
        return []
    changes = [r for r in remedies if r.applied]
    back = [r for r in changes if r.restored]
    by_hand = [r for r in remedies if r.applied is False]
    unknown = [r for r in remedies if r.applied is None]
    said = []
    if back:
        said.append(f"{_count(len(back), 'earlier change')} made and put back.")
    if len(changes) > len(back):
        said.append(f"{_count(len(changes) - len(back), 'earlier change')} made and not put back.")
    if by_hand:
        said.append(f"{_count(len(by_hand), 'earlier task')} taken on by a person.")
    if unknown:
        said.append(f"{_count(len(unknown), 'earlier remedy')} tried.")
    return said


def _count(number: int, what: str) -> str:
    if number == 1:
        return f"An {what} was"
    plural = what.replace("remedy", "remedies") if what.endswith("remedy") else f"{what}s"
    return f"{number} {plural} were"
