"""A plan is shown to people, who answer it until it expires; where nobody does, further groups are told."""

from datetime import datetime

from agent.core.decision.approvals import Approvals, approvals_of
from agent.core.incident.incident import Incident
from agent.core.incident.phase import EventKind, Phase
from agent.core.incident.renotify import is_unattended
from agent.core.plan.plan import Plan
from agent.errors import SreError
from agent.ports.bus import Topic
from agent.ports.stage_context import StageContext
from agent.presentation.impact_text import span
from agent.stages.shared.approval import is_automatic
from agent.stages.shared.budget import budget_refusal, has_budget
from agent.stages.shared.commit import message_for, save
from agent.stages.shared.outcome import StageOutcome

REMINDED = "nobody answered; told"


def ask(context: StageContext, incident: Incident) -> StageOutcome:
    """Show the plan to people and wait for one answer."""
    now = context.now_for(incident)
    plan = incident.require_plan()
    asked = incident.move(Phase.ASKED, now=now, approvals=approvals_for(context, plan, now))
    also = (message_for(incident, Topic.DECISIONS, "auto"),) if is_automatic(context, incident, plan) else ()
    what = f"asked about plan {plan.id}, until {plan.expires_at:%H:%M:%S} UTC"
    save(context, asked.with_(due_at=asked.answer_due_at), what, now=now, also=also)
    return StageOutcome.MOVED


def approvals_for(context: StageContext, plan: Plan, now: datetime) -> Approvals | None:
    """Return how a plan is asked about; None of a task for a person, which asks for no approval of a change."""
    if plan.by_person:
        return None
    policy, service = context.rules.policy, plan.target.service
    asked = approvals_of(
        policy,
        plan=plan.id,
        service=service,
        requirement=policy.requirement(service, plan.actions),
        asked_at=now,
        expires_at=plan.expires_at,
        asked_for=plan.asked_by is not None,
    )
    return asked.with_(over_budget=_over_budget(context, plan))


def _over_budget(context: StageContext, plan: Plan) -> str:
    """Say beforehand what the executor would refuse; where prices cannot be had now, it alone says so."""
    if not has_budget(context, plan.target.service):
        return ""
    try:
        live = context.live(plan.target.service)
        return budget_refusal(context, plan, live.config) if live is not None else ""
    except SreError:
        return ""


def remind(context: StageContext, incident: Incident) -> StageOutcome:
    """Tell the next group of approvers, once, where nobody answered in time."""
    now = context.now_for(incident)
    approvals = incident.approvals
    reminder = approvals.next_escalation if approvals is not None else None
    if approvals is None or reminder is None or now < reminder.at:
        return StageOutcome.WAITING
    reminded = incident.with_(approvals=approvals.with_(groups_notified=approvals.groups_notified + 1))
    kind = EventKind.REMINDED
    who = f"{reminder.group} ({', '.join(reminder.names) or 'nobody is in it'})"
    save(context, reminded.with_(due_at=reminded.answer_due_at), f"{REMINDED} {who}", now=now, wake=False, kind=kind)
    return StageOutcome.MOVED


def expire(context: StageContext, incident: Incident) -> StageOutcome:
    """Close a plan that nobody answered in time."""
    now = context.now_for(incident)
    plan = incident.require_plan()
    if now < plan.expires_at:
        return StageOutcome.WAITING
    given = incident.approvals.given if incident.approvals is not None else ()
    how = (
        f"with {len(given)} of {incident.approvals.needed} approvals" if given and incident.approvals else "unanswered"
    )
    save(context, incident.move(Phase.EXPIRED, now=now, due_at=now), f"plan {plan.id} expired {how}", now=now)
    return StageOutcome.MOVED


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
