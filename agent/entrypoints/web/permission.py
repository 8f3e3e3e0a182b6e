"""Whether this person may answer this plan, and if not, why; the stage that records it checks its own part again."""

from agent.core.decision import Channel
from agent.core.incident import Incident
from agent.core.plan import Plan
from agent.core.policy import Policy
from agent.entrypoints.web.identity import Person


def may_not_decide(policy: Policy, person: Person, plan: Plan) -> str:
    """Return why this person's word does not count for this plan, or nothing.

    The operator of this machine is the only person there is, and shown as not verified. A verified person must
    stand among the approvers of the policy, with this service; an empty list allows nobody.
    """
    return policy.bars(Channel.CONSOLE, person.name, plan.target.service) if person.verified else ""


def may_not_approve(person: Person, incident: Incident, plan: Plan) -> str:
    """Return why this person may reject but not approve, or nothing."""
    if plan.asked_by is not None and plan.asked_by == person.name:
        return f"{person.name} started this run, and who asks does not approve. Ask somebody else."
    if not incident.may_change and not plan.by_person:
        return "This is a replay for analysis: it changes nothing. Start it with --live to be able to apply its plan."
    return ""
