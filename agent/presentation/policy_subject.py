"""What the policy is asked about: a plan of an incident, or a request that has none yet."""

from agent.core.incident.incident import Incident
from agent.core.incident.phase import BEFORE_DECISION, Phase
from agent.core.plan.plan import Plan
from agent.presentation.policy_explanation import Subject


def subject_of_request(incident: Incident) -> Subject:
    """Return what is looked at of a request that has no plan yet."""
    request = incident.request
    assert request is not None, "an id that begins with rq- is a request's"
    return Subject(
        service=request.service,
        actions=request.actions,
        asker=request.asker,
        asked_through=request.channel,
        closed="" if incident.phase in BEFORE_DECISION else f"the request is {incident.phase}",
    )


def subject_of_plan(incident: Incident, plan: Plan) -> Subject:
    """Return what is looked at of a plan, with the approvals that it has."""
    approvals, request = incident.approvals, incident.request
    given = approvals.given if approvals is not None else ()
    return Subject(
        service=plan.target.service,
        actions=plan.actions,
        asker=plan.asked_by,
        asked_through=request.channel if request is not None else None,
        unproved=plan.unproved,
        over_budget=approvals.over_budget if approvals is not None else None,
        given=tuple(a.name for a in given),
        broken=tuple(name for a in given for name in a.breaks),
        policy=plan.policy,
        closed=_closed(incident, plan),
        expires_at=plan.expires_at,
    )


def _closed(incident: Incident, plan: Plan) -> str:
    if not incident.may_change and not plan.by_person:
        return "it belongs to a replay, which changes nothing; replay it with --live"
    if incident.phase in {Phase.PLANNED, Phase.ASKED}:
        return ""
    decision = incident.decision
    by = f": {decision.answer} by {decision.shown}" if decision is not None and decision.plan == plan.id else ""
    what = "request" if incident.request is not None else "incident"
    return f"it cannot be answered any more, the {what} is {incident.phase}{by}"
