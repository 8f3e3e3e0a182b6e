"""Whether a service still stands as our change left it, or somebody else has changed it since."""

from collections import Counter
from collections.abc import Iterable

from pydantic import TypeAdapter, ValidationError

from agent.core.execution import EffectKind, Execution
from agent.core.plan import Plan, Rollout
from agent.core.serving import Live, Traffic
from agent.core.value import digest

_TRAFFIC = TypeAdapter(tuple[Traffic, ...])


def changed_since(plan: Plan, execution: Execution, live: Live) -> str:
    """Return whose work a further effect would undo, or nothing: the approval covers what our change replaced, no more.

    The newest revision of our change may not stand yet; then the template already names it. Tags without a share of
    the traffic are not looked at.

    Args:
        plan: The approved plan, which names the service by its uid.
        execution: What we did, and what stood before.
        live: The service as it is now.
    """
    who = f"somebody changed {live.service!r} since: "
    if live.uid != plan.target.uid:
        return f"{who}it was deleted and made again"
    newest, ours = live.latest_created_revision, execution.revision_after
    known = newest in {None, ours} or f'"{ours}"' in live.template or digest(live.template) == plan.prior_template
    if not known:
        return f"{who}its newest revision is {newest!r}, ours is {ours!r}"
    now, left = _shares(live.traffic), _left_behind(plan, execution)
    if now not in left:
        return f"{who}its traffic goes to {_said(now)}, and we left it at {_said(left[0])}"
    return ""


def _left_behind(plan: Plan, execution: Execution) -> list[Counter[str]]:
    """Return the shares of the traffic that our effects may have left, the likeliest first."""
    try:
        prior = _TRAFFIC.validate_json(execution.prior_traffic)
    except ValidationError:
        return [Counter()]  # what was there cannot be read: nothing but a service without traffic is known
    if plan.rollout is not Rollout.STAGED:
        return [_shares(prior)]
    before = _shares(t.with_(revision=t.revision or execution.revision_before) for t in prior)
    if execution.effect(EffectKind.SHIFT) is None:
        return [before]
    ours = Traffic(revision=execution.revision_after, percent=100)
    return [_shares((ours,)), _shares((Traffic(percent=100),)), before]  # the latest, where the policy followed it


def _shares(traffic: Iterable[Traffic]) -> Counter[str]:
    shares: Counter[str] = Counter()
    for target in traffic:
        if target.percent:
            shares[target.revision or "the latest"] += target.percent
    return shares


def _said(shares: Counter[str]) -> str:
    return ", ".join(f"{name} ({percent} %)" for name, percent in shares.items()) or "nothing"
