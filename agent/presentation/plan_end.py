"""What became of a plan: read from the incident and its timeline, so that it holds after the next plan has come."""

from datetime import datetime

from pydantic import AwareDatetime

from agent.core.decision.decision import shown_name
from agent.core.incident.incident import TAKEN_BACK, Event, Incident, Remedy
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Plan
from agent.core.value import Value
from agent.presentation.measured import VERDICTS
from agent.presentation.phase_words import Tone, label_of, tone_of
from agent.presentation.standing import Standing, moment, standing

_ENDS_ASKING = frozenset({Phase.APPROVED, Phase.REJECTED, Phase.EXPIRED, Phase.SUPERSEDED, Phase.SELF_RECOVERED})


class PlanEnd(Value):
    """How the asking ended.

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


def plan_end(plan: Plan, incident: Incident, timeline: tuple[Event, ...]) -> PlanEnd | None:
    """Return what became of a plan, or None where it still needs an answer.

    Args:
        plan: Any plan of the incident.
        incident: The incident as it is now.
        timeline: Its whole timeline.
    """
    decision = incident.decision
    if decision is not None and decision.plan == plan.id:
        phase = Phase.APPROVED if decision.answer == "approve" else Phase.REJECTED
        return PlanEnd(
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
            return PlanEnd(phase=event.phase, at=event.at, by=event.by)
    return None


def _made(plan: Plan, event: Event) -> bool:
    return event.phase is Phase.PLANNED and event.at == plan.made_at and event.what.startswith(f"plan {plan.id}:")


def plan_standing(plan: Plan, incident: Incident, timeline: tuple[Event, ...], now: datetime) -> Standing:
    """Return where a plan stands: the incident's own standing while it is carried out, otherwise how it ended."""
    end = plan_end(plan, incident, timeline)
    current = incident.plan is not None and incident.plan.id == plan.id
    if end is not None and end.phase is Phase.APPROVED and current:
        return standing(incident, now)
    if end is not None:
        return Standing(
            label=label_of(end.phase), tone=tone_of(end.phase), now=ended_says(end, outcome(plan, incident))
        )
    if now >= plan.expires_at or (current and incident.phase is Phase.ASKED):
        return standing(incident.with_(phase=Phase.ASKED, plan=plan), now)
    return Standing(label="Not offered yet", tone=Tone.QUIET, now="It is about to be shown.")


def ended_says(end: PlanEnd, outcome: str = "") -> str:
    """Say how a plan ended; of an approved one also what came of it, where that is known."""
    at = moment(end.at)
    who = shown_name(end.by, verified=end.verified is not False)
    match end.phase:
        case Phase.APPROVED:
            return f"Approved by {who} at {at}" + (f"; {outcome}." if outcome else ".")
        case Phase.REJECTED:
            return f"Rejected by {who} at {at}; it was not applied." + (f" Reason: {end.why}" if end.why else "")
        case Phase.EXPIRED:
            return f"Nobody answered by {at}; it was not applied."
        case Phase.SUPERSEDED:
            return f"More became known, so it was withdrawn at {at}; it was not applied."
        case _:
            return f"The service recovered at {at} before anybody answered; the plan was not applied."


def outcome(plan: Plan, incident: Incident) -> str:
    """Return what came of a plan that was approved, from its remedy; empty where that is not known."""
    tried = [r for r in incident.remedies if r.incident == incident.id and r.proposal == plan.proposal]
    if not tried:
        return ""
    verdicts = {str(v): words for v, words in VERDICTS.items()}
    last = tried[-1]
    if last.ended == Phase.REFUSED:
        return "refused at the final check, so not applied"
    if last.ended == TAKEN_BACK:
        return "a person rolled it back" + _restored(last).replace("; put back", "")
    if last.ended not in verdicts:
        return ""
    return verdicts[last.ended] + _restored(last)


def _restored(remedy: Remedy) -> str:
    if remedy.applied is False:
        return "; the agent changed nothing"
    return {True: "; put back", False: "; not put back", None: ""}[remedy.restored] if remedy.applied else ""
