"""What else is open on a service: an incident or a request whose change comes first, or whose plan is taken back."""

from agent.core.incident.incident import Incident
from agent.core.incident.phase import UNDER_WAY
from agent.ports.stage_context import StageContext
from agent.ports.store import head_key, request_head

CHAIN = 8  # of those that wait for one another, take a place or follow; a longer chain has ended at its other end


def open_on(context: StageContext, run: str, service: str, *, but: str = "") -> tuple[Incident, ...]:
    """Return what is open on a service: its newest request, its newest incident, and what is open behind each.

    Args:
        context: The ports.
        run: Of one run; runs never join.
        service: Which service.
        but: The id of one that does not count.
    """
    heads = (request_head(run, service), head_key(run, service, None))
    found = {rival.id: rival for head in heads for rival in _chain(context, head)}
    return tuple(rival for rival in found.values() if not rival.ended and rival.id != but)


def under_way(rivals: tuple[Incident, ...]) -> Incident | None:
    """Return the one whose change is approved or being made: a newer one waits until it is over."""
    return next((rival for rival in rivals if rival.phase in UNDER_WAY), None)


def yields_to(context: StageContext, incident: Incident) -> Incident | None:
    """Return the open request for which an incident makes no plan now, or None where nothing keeps it.

    A request whose change is under way comes first, because a plan made now would be for a state that is about to go;
    so does a request that took the place of this incident's plan.
    """
    for rival in _chain(context, request_head(incident.run, incident.service)):
        superseded = rival.request is not None and incident.id in rival.request.superseded
        if not rival.ended and rival.request is not None and (rival.phase in UNDER_WAY or superseded):
            return rival
    return None


def _chain(context: StageContext, key: str) -> tuple[Incident, ...]:
    """Return the newest request or incident of a service, and all that may be open behind it."""
    found: dict[str, Incident] = {}
    head = context.store.head(key)
    ahead = [head] if head is not None else []
    while ahead and len(found) < CHAIN:
        name = ahead.pop(0)
        if name not in found:
            found[name] = context.store.load(name)
            ahead += _behind(found[name])
    return tuple(found.values())


def _behind(rival: Incident) -> tuple[str, ...]:
    """Return what a request waited for and whose place it was to take, and what an incident follows.

    What stood behind a request that had a plan and ended, or an incident whose change was made, is over.
    """
    request = rival.request
    if rival.ended and (rival.plan if request is not None else rival.execution) is not None:
        return ()
    others = (rival.linked_to,) if request is None else (request.waits_for, *request.superseded)
    return tuple(other for other in others if other is not None)
