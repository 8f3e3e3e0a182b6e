"""What did not end well gets its next plan, or goes to a person with everything known; a request is closed instead."""

from datetime import datetime

from agent.core.change.verification import Verdict
from agent.core.decision.decision import NO_REASON
from agent.core.incident.incident import TAKEN_BACK, Incident, Remedy
from agent.core.incident.phase import EventKind, Phase
from agent.ports.stage_context import StageContext
from agent.stages.diagnosis_to_plan import described_plan, store_plan
from agent.stages.incident_to_diagnosis import rediagnose
from agent.stages.shared.commit import poll_again, save
from agent.stages.shared.other_changes import yields_to
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.remedies import tried_remedies

FAILED = frozenset({Verdict.NOT_RECOVERED.value, Verdict.INCONCLUSIVE.value, TAKEN_BACK})
NOTHING_LEFT = "nothing is left that fits, is allowed and was not tried"
UNANSWERED_LIMIT = 2
REFUSED_LIMIT = 3
STOPPED = ("kill switch", "the two databases")


def outcome_to_plan(context: StageContext, incident: Incident) -> StageOutcome:
    """Plan anew with everything learned, or escalate.

    Two failed remedies of one fingerprint are enough; so are two plans that nobody answered.
    """
    now = context.now_for(incident)
    if yields_to(context, incident) is not None:
        return poll_again(context, incident, now=now)
    weighed = rediagnose(context, incident, context.store.signals(incident.id), now)
    known = weighed.with_(remedies=tried_remedies(incident, now))
    why = _enough(known, context.rules.policy.remedies_per_fingerprint)
    known, plan = (known, None) if why else described_plan(context, known, now)
    if plan is None:
        return _escalate(context, known, why or NOTHING_LEFT, now)
    store_plan(context, known, plan, now)
    return StageOutcome.MOVED


def plan_again(context: StageContext, incident: Incident) -> StageOutcome:
    """Make the next-best plan because a person asks for it, past every count of failures; or say that none is left.

    What failed or was rejected does not come again, and whatever policy says, a person approves it.
    """
    now = context.now_for(incident)
    if yields_to(context, incident) is not None:
        return poll_again(context, incident, now=now)
    known = rediagnose(context, incident, context.store.signals(incident.id), now)
    known, plan = described_plan(context, known, now)
    if plan is None:
        what = f"no other plan: {NOTHING_LEFT}"
        save(context, known.with_(replan=None, due_at=None), what, now=now, kind=EventKind.NO_PLAN_LEFT)
        return StageOutcome.NOTED
    store_plan(context, known, plan, now)
    return StageOutcome.MOVED


def _enough(incident: Incident, limit: int) -> str:
    own = [r for r in incident.remedies if r.cause == incident.cause]
    failed = _count(own, FAILED)
    if failed >= limit:
        return f"{failed} remedies for the same cause were tried, and none is known to have helped"
    if _count(own, {Phase.EXPIRED.value}, incident.id) >= UNANSWERED_LIMIT:
        return f"{UNANSWERED_LIMIT} plans were not answered"
    if _count(own, {Phase.REFUSED.value}, incident.id) >= REFUSED_LIMIT:
        return f"{REFUSED_LIMIT} approved plans were refused at the last look; the last time: {incident.ended_why}"
    if incident.phase is Phase.REFUSED and any(word in incident.ended_why for word in STOPPED):
        return incident.ended_why
    return ""


def _count(remedies: list[Remedy], ends: frozenset[str] | set[str], incident: str | None = None) -> int:
    return sum(1 for r in remedies if r.ended in ends and incident in {None, r.incident})


def _escalate(context: StageContext, incident: Incident, why: str, now: datetime) -> StageOutcome:
    moved = incident.move(Phase.ESCALATED, now=now, due_at=None, ended_why=why)
    save(context, moved, f"escalated: {why}", now=now)
    return StageOutcome.MOVED


def close_request(context: StageContext, incident: Incident) -> StageOutcome:
    """Close a request that was refused, rejected, withdrawn or rolled back, or that nobody answered."""
    now = context.now_for(incident)
    why = _why_closed(incident)
    save(context, incident.move(Phase.CLOSED, now=now, due_at=None, ended_why=why), f"closed: {why}", now=now)
    return StageOutcome.MOVED


def _why_closed(incident: Incident) -> str:
    decision = incident.decision
    if incident.phase is Phase.REJECTED and decision is not None:
        return f"{decision.shown} rejected it: {decision.why or NO_REASON}"
    if incident.phase is Phase.EXPIRED:
        return "nobody answered in time"
    if incident.phase is Phase.ROLLED_BACK and incident.roll_back is not None:
        by = incident.roll_back.by
        return f"{by.shown} rolled it back: {by.why}; {incident.ended_why}"
    if incident.phase is Phase.ROLLED_BACK and incident.verification is not None and incident.verification.why:
        return f"{incident.verification.why}; {incident.ended_why}"
    return incident.ended_why or "it did not come about"
