"""An incident waits for a person and nobody reacts: people are told again, a few times."""

from agent.core.incident.incident import Incident
from agent.core.incident.phase import EventKind, Phase
from agent.core.incident.renotify import is_unattended
from agent.ports.stage_context import StageContext
from agent.presentation.impact_text import span
from agent.stages.shared.commit import save
from agent.stages.shared.outcome import StageOutcome

_WAITS = {Phase.ASKED: "nobody has answered or acknowledged it", Phase.ESCALATED: "nobody has acknowledged it"}


def renotify(context: StageContext, incident: Incident) -> StageOutcome:
    """Tell people again of what waits for them; the line of the timeline is what each notifier goes by."""
    now = context.now_for(incident)
    if incident.renotify_at is None or now < incident.renotify_at or not is_unattended(incident):
        return StageOutcome.WAITING
    again = incident.with_(renotified=incident.renotified + 1, renotify_at=None)
    most = context.rules.times.renotify_times
    last = "; this is the last reminder" if again.renotified >= most > 1 else ""
    # from when nobody reacts, or since people were told last: that nobody did in between is not on record
    waited = span((now - incident.renotify_at).total_seconds() + context.rules.times.renotify_s)
    what = f"{_WAITS[incident.phase]} for {waited}{last}"
    save(context, again, what, now=now, wake=False, kind=EventKind.UNACKNOWLEDGED)
    return StageOutcome.MOVED
