"""A change that a person asked for gets its plan: the same difference, proof and price as any other, or a refusal."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from agent.core.incident.incident import Incident
from agent.core.incident.phase import BEFORE_DECISION, EventKind, Phase
from agent.core.plan.plan import Plan
from agent.core.planning.requested import propose_requested
from agent.errors import PolicyRefused, SreError
from agent.ports.stage_context import StageContext
from agent.stages.diagnosis_to_plan import locked, plan_of, store_plan
from agent.stages.shared.approved_plan import described
from agent.stages.shared.budget import over_budget
from agent.stages.shared.commit import poll_again, save
from agent.stages.shared.effects import REFUSALS
from agent.stages.shared.other_changes import open_on, under_way
from agent.stages.shared.outcome import StageOutcome


class OverBudget(PolicyRefused):
    """It would cost more than the policy's budget allows."""

    exit_code: ClassVar[int] = 1


def plan_request(context: StageContext, incident: Incident) -> StageOutcome:
    """Make the plan of a requested change, or refuse it with the nearest that could be done.

    A change of the service that is under way comes first. A plan that the request takes the place of is taken back
    once the request has a plan of its own; a request that is refused takes nothing from anybody.

    Raises:
        DependencyFailed: The platform did not describe the service; it is tried again.
    """
    now = context.now_for(incident)
    if under_way(open_on(context, incident.run, incident.service, but=incident.id)) is not None:
        return poll_again(context, incident, now=now)
    try:
        plan = requested_plan(context, incident, now)
    except REFUSALS as refusal:
        why = _sentence(refusal)
        save(context, incident.move(Phase.REFUSED, now=now, due_at=now, ended_why=why), f"refused: {why}", now=now)
        return StageOutcome.MOVED
    _supersede(context, incident)
    store_plan(context, incident, plan, now)
    return StageOutcome.MOVED


def requested_plan(context: StageContext, incident: Incident, now: datetime) -> Plan:
    """Return the plan of a request as the service stands now; nothing is stored.

    Raises:
        InputRejected: Nothing would change, or the platform does not have the service.
        PolicyRefused: It is not allowed, does not fit, is not proved, or was asked for another state.
        OverBudget: It would break a budget.
        DependencyFailed: The platform did not describe the service.
    """
    rules, request = context.rules, incident.require_request()
    live = described(context, incident.service, request.actions)
    service = rules.services.service(incident.service)
    proposal = propose_requested(incident, service, live, rules.fits, rules.policy)
    over = over_budget(context, incident.service, live.config)(proposal.actions) if live is not None else ""
    if over:
        raise OverBudget(
            f"the change of {incident.service!r} was refused",
            why=over,
            hint="ask for less, or have a budget raised in policy.toml",
        )
    note = locked(context, live, proposal)
    noted = replace(proposal, notes=(*proposal.notes, note)) if note else proposal
    return plan_of(context, incident, live, noted, now)


def _sentence(refusal: SreError) -> str:
    return f"{refusal.why.rstrip('.')}; {refusal.hint}"


def _supersede(context: StageContext, incident: Incident) -> None:
    """Take back the plans whose place the request takes, where nobody approved them yet."""
    request = incident.require_request()
    for superseded in request.superseded:
        why = f"the change request {request.id} of {request.asker} took its place"
        _take_back(context, context.store.load(superseded), why)


def _take_back(context: StageContext, rival: Incident, why: str) -> None:
    now = context.now_for(rival)
    if rival.request is not None and rival.phase in BEFORE_DECISION:
        moved = rival.move(Phase.WITHDRAWN, now=now, due_at=now, ended_why=why)
        save(context, moved, why, now=now, kind=EventKind.SUPERSEDED)
    elif rival.request is None and rival.phase in {Phase.PLANNED, Phase.ASKED}:
        asked = rival if rival.phase is Phase.ASKED else rival.move(Phase.ASKED, now=now)
        due = now + timedelta(seconds=context.rules.times.poll_s)
        save(context, asked.move(Phase.SUPERSEDED, now=now, due_at=due), f"withdrawn: {why}", now=now)
