"""An approved plan is applied only as it was shown: approved, unexpired, and made for the state that stands."""

from datetime import datetime

from agent.core.change.execution import Intent
from agent.core.incident.incident import Incident
from agent.core.plan.action import Action, LifecycleOperation, applied, difference
from agent.core.plan.lifecycle import absent, lifecycle_of
from agent.core.plan.plan import Plan
from agent.core.planning.planning import proof_of
from agent.core.service.serving import Live
from agent.ports.control import LeaseEnd
from agent.ports.platform import NotDeployed, Order
from agent.ports.stage_context import StageContext
from agent.stages.shared.approval import check_approval, refused
from agent.stages.shared.freezes import check_not_frozen


def check_allowed(context: StageContext, incident: Incident, plan: Plan, now: datetime) -> None:
    """Refuse unless a valid approval covers exactly this plan.

    Raises:
        PolicyRefused: It was not approved, or the approval expired or covers something else.
        DependencyFailed: The holder of the key did not answer; nothing may follow.
    """
    decision = incident.decision
    if decision is None:
        raise refused(plan, "nobody approved it", f"sre-agent approve {plan.id}")
    check_approval(context, incident, plan, decision)
    if now >= decision.expires_at:
        raise refused(plan, f"the approval expired at {decision.expires_at:%H:%M:%S} UTC", "approve the next plan")
    check_not_frozen(context, plan, decision, now)


def describe_service(context: StageContext, plan: Plan) -> Live:
    """Describe the service of a plan; what it is to create starts from nothing.

    Raises:
        NotDeployed: It is not there, and the plan does not create it.
        PolicyRefused: We have no adapter for its platform.
    """
    live = described(context, plan.target.service, plan.actions)
    if live is None:
        raise refused(plan, "there is no adapter for its platform", "do it by hand")
    return live


def described(context: StageContext, service: str, actions: tuple[Action, ...]) -> Live | None:
    """Describe a service as actions find it: what they are to create starts from nothing; None without an adapter.

    Raises:
        NotDeployed: It is not there, and the actions do not create it.
    """
    try:
        return context.live(service)
    except NotDeployed:
        if lifecycle_of(actions) is not LifecycleOperation.CREATE:
            raise
        return absent(service, context.rules.services.service(service).platform)


def check_as_shown(context: StageContext, incident: Incident, plan: Plan, live: Live) -> None:
    """Refuse a plan that was made for another state, or that shows another difference or proof than it has.

    Both are computed anew from the live configuration: whoever writes the incident database chose what people saw.
    """
    if live.target != plan.target:
        raise refused(
            plan,
            f"{plan.target.service!r} changed since the plan was made "
            f"(generation {plan.target.generation}, now {live.generation})",
            "look at the new plan and approve it",
        )
    after = applied(live.config, plan.actions)
    if difference(live.config, after) != plan.difference:
        raise refused(
            plan, "it does not show what it would change", "look at the new plan, and at who writes to the store"
        )
    proof, shown = context.rules.fits.assess(plan.target.service, after), plan.fit_after
    if (proof.fits, proof.reason, proof.sentence) != (shown.fits, shown.reason, shown.sentence):
        why = f"it shows {shown.sentence!r}, and the arithmetic says {proof.sentence!r}"
        raise refused(plan, why, "look at the new plan, and at who writes to the store")
    proven = proof_of(incident, live, plan.actions, context.rules.fits, fit=proof)
    if (proven.proof, proven.figures) != (plan.proof, plan.proof_figures):
        why = f"it shows the proof {plan.proof!s}, and from the live configuration it is {proven.proof!s}"
        why += " with other figures" if proven.proof is plan.proof else ""
        raise refused(plan, why, "look at the new plan, and at who writes to the store")


def platform_order(intent: Intent, lease_end: LeaseEnd | None = None) -> Order:
    """Return what the platform is asked to apply; without the end of a lease, to check."""
    return Order(
        service=intent.service,
        incident=intent.incident,
        effect_key=intent.key,
        revision=intent.revision,
        etag=intent.etag,
        actions=intent.actions,
        staged=intent.staged,
        lease_end=lease_end,
    )
