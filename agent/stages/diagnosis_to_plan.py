"""A settled diagnosis gets a plan: the first remedy that fits, is allowed and was not tried before."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from agent.core.incident.incident import Incident, plan_id
from agent.core.incident.phase import Phase
from agent.core.plan.action import Action
from agent.core.plan.plan import Plan, Rollout
from agent.core.planning.planning import Proposal, propose
from agent.core.service.container_args import flag_map
from agent.core.service.serving import Live, Target
from agent.core.value import digest
from agent.errors import InputRejected, PolicyRefused
from agent.ports.stage_context import StageContext
from agent.stages.shared.budget import over_budget
from agent.stages.shared.commit import poll_again, save
from agent.stages.shared.other_changes import yields_to
from agent.stages.shared.outcome import StageOutcome

IF_UNANSWERED: Final = (
    "If nobody answers, nothing is changed and the incident stays open; you are told when it expires."
)
ASKED_WITH_KEY: Final = frozenset({"cloud_run", "container_apps", "kubernetes", "tpu_vm"})
REQUEST_UNANSWERED: Final = "If nobody answers, nothing is changed and the request is closed."


def diagnosis_to_plan(context: StageContext, incident: Incident) -> StageOutcome:
    """Make the first plan of a diagnosis, once it is settled.

    Raises:
        DependencyFailed: The platform did not describe the service; it is tried again.
    """
    now = context.now_for(incident)
    times = context.rules.times
    if not times.settled(incident, now):
        due = times.settles_at(incident)
        if incident.due_at != due:
            save(context, incident.with_(due_at=due), "", now=now, tell=False, wake=False)
        return StageOutcome.WAITING
    if yields_to(context, incident) is not None:
        return poll_again(context, incident, now=now)
    incident, plan = described_plan(context, incident, now)
    if plan is None:  # a recurrence: everything was tried or rejected in the incident before, the person's errand too
        why = "nothing is left that fits, is allowed and was not tried before"
        save(context, incident.move(Phase.ESCALATED, now=now, due_at=None, ended_why=why), f"escalated: {why}", now=now)
        return StageOutcome.MOVED
    store_plan(context, incident, plan, now)
    return StageOutcome.MOVED


def next_plan(context: StageContext, incident: Incident, now: datetime) -> Plan | None:
    """Return the best plan that was neither tried nor refused, or None where nothing is left."""
    return described_plan(context, incident, now)[1]


def described_plan(context: StageContext, incident: Incident, now: datetime) -> tuple[Incident, Plan | None]:
    """Return the incident with what serves now, and the best plan that is left, or None."""
    live, refused = _described(context, incident.service)
    seen = incident.with_(serves=live.serves(now)) if live is not None else incident
    return seen, _best_plan(context, seen, live, refused, now)


def _best_plan(
    context: StageContext, incident: Incident, live: Live | None, refused: str, now: datetime
) -> Plan | None:
    rules = context.rules
    over = over_budget(context, incident.service, live.config) if live is not None else _no_budget
    proposal = propose(incident, live, rules.fits, rules.policy, over)
    if proposal is None:
        return None
    more = tuple(note for note in (refused, locked(context, live, proposal)) if note)
    return plan_of(context, incident, live, replace(proposal, notes=(*proposal.notes, *more)), now)


def _no_budget(_: tuple[Action, ...]) -> str:
    """What nobody describes to us we do not change, so it breaks no budget."""
    return ""


def locked(context: StageContext, live: Live | None, proposal: Proposal) -> str:
    """Say beforehand that a change could not be verified, because the server wants a key that nobody named to us."""
    if live is None or live.platform not in ASKED_WITH_KEY or proposal.rollout is Rollout.BY_PERSON:
        return ""
    watched = context.rules.services.watched(live.service)
    words, names = flag_map((*live.config.command, *live.config.args)), {e.name for e in live.config.env}
    if ("api-key" not in words and "VLLM_API_KEY" not in names) or (watched is not None and watched.api_key):
        return ""
    return (
        "the server wants an API key, and services.toml names none (api_key): without it no answer can be measured, "
        "the change counts as inconclusive and is rolled back"
    )


def _described(context: StageContext, service: str) -> tuple[Live | None, str]:
    """Describe the service; where the platform has none of that name or denies us, a person must do it."""
    try:
        return context.live(service), ""
    except (InputRejected, PolicyRefused) as error:
        return None, f"the service could not be read, so nothing can be changed by us: {error}"


def store_plan(context: StageContext, incident: Incident, plan: Plan, now: datetime) -> Incident:
    """Save the plan and move on to asking."""
    planned = incident.move(Phase.PLANNED, now=now, plan=plan, plans_made=plan.ordinal, due_at=now)
    cleared = planned.with_(decision=None, approvals=None, execution=None, verification=None, ended_why="")
    fresh = cleared.with_(task_done=None, roll_back=None, replanned=incident.replan or incident.replanned)
    return save(context, fresh, f"plan {plan.id}: {plan.why}", now=now, tell=False, plan=plan)


def plan_of(context: StageContext, incident: Incident, live: Live | None, proposal: Proposal, now: datetime) -> Plan:
    """Return the next plan of an incident or a request, made from a proposal."""
    ordinal = incident.plans_made + 1
    none = Target(service=incident.service, uid="", generation=0, digest="")
    return Plan(
        id=plan_id(incident.id, ordinal),
        incident=incident.id,
        run=incident.run,
        ordinal=ordinal,
        cause=incident.cause,
        why=proposal.why,
        actions=proposal.actions,
        difference=proposal.difference,
        target=live.target if live is not None else none,
        prior_template=digest(live.template) if live is not None else "",
        rollout=proposal.rollout,
        fit_before=proposal.fit_before,
        fit_after=proposal.fit_after,
        cost_before_usd_per_h=proposal.cost_before_usd_per_h,
        cost_after_usd_per_h=proposal.cost_after_usd_per_h,
        decode_tokens_per_s=proposal.decode_tokens_per_s,
        risk=proposal.risk,
        risk_reasons=proposal.risk_reasons,
        undo=proposal.undo,
        if_unanswered=IF_UNANSWERED if incident.request is None else REQUEST_UNANSWERED,
        notes=proposal.notes,
        proof=proposal.proof,
        proof_figures=proposal.proof_figures,
        proof_missing=proposal.proof_missing,
        takes_away=proposal.takes_away,
        policy=context.rules.policy.digest,
        asked_by=incident.request.asker if incident.request is not None else incident.started_by,
        made_at=now,
        expires_at=now + timedelta(seconds=context.rules.times.approval_s),
    )
