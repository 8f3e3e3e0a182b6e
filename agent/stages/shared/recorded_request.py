"""A requested change is carried out only as the control database holds it: same asker, same actions, signed."""

from agent.core.change.request import ChangeRequest, check_request
from agent.core.incident.incident import Incident
from agent.core.plan.plan import Plan
from agent.errors import PolicyRefused
from agent.ports.stage_context import StageContext


def check_requested(context: StageContext, incident: Incident, plan: Plan) -> ChangeRequest | None:
    """Refuse a plan of a request that the control database does not hold, or holds otherwise; None for an incident.

    Whoever writes the incident database alone can neither make a request nor turn one into an incident.

    Raises:
        PolicyRefused: The request, its asker or its actions are not what was signed.
        DependencyFailed: The control database or the holder of the key did not answer; nothing may follow.
    """
    held = context.control_store().change_request(incident.id)
    if held is None and incident.request is None:
        return None
    if held is None:
        raise _forged(plan, "the control database holds no such request")
    check_request(held, context.receipts())
    if incident.request != held:
        raise _forged(plan, "the request is not the one that was signed")
    if plan.actions != held.actions or plan.asked_by != held.asker or plan.target.service != held.service:
        raise _forged(plan, "its asker, service or actions are not those of the signed request")
    return held


def _forged(plan: Plan, why: str) -> PolicyRefused:
    hint = "ask for the change again: sre-agent change; check who writes to the store"
    return PolicyRefused(f"plan {plan.id!r} was not applied", why=why, hint=hint)
