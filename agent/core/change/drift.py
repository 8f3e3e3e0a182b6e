"""Whether a service still stands as our change left it, or somebody else has changed it since."""

from collections import Counter
from collections.abc import Iterable

from pydantic import TypeAdapter, ValidationError

from agent.core.change.execution import Intent
from agent.core.plan.action import Lifecycle, LifecycleOperation, SetInstanceType, SetScaling, applied
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.service.serving import Live, Traffic
from agent.core.value import digest

_TRAFFIC = TypeAdapter(tuple[Traffic, ...])


def drift_since(intent: Intent, live: Live, *, shifted: bool = False) -> str:
    """Return whose work a further effect would undo, or nothing: the approval covers what our change replaced, no more.

    The service must stand as it did before the change, or differ from that only by the change itself, which carries
    our stamp. Tags without a share of the traffic are not looked at.

    Args:
        intent: The change that we made, with what stood before it.
        live: The service as it is now.
        shifted: Whether the traffic may have been given to our revision.
    """
    who = f"somebody changed {live.service!r} since: "
    created = lifecycle_of(intent.actions) is LifecycleOperation.CREATE
    if created and intent.key not in live.stamps.values():
        return f"{who}it was made by somebody else"
    if intent.target is not None and not created and live.uid != intent.target.uid:
        return f"{who}it was deleted and made again"
    newest, ours = live.latest_created_revision, intent.revision
    prior = digest(live.template) == digest(intent.prior_template)
    if not (newest in {None, ours} or f'"{ours}"' in live.template or prior):
        return f"{who}its newest revision is {newest!r}, ours is {ours!r}"
    if not _ours_or_before(intent, live):
        return f"{who}its configuration is not the one that our change made"
    now, left = _shares(live.traffic), _left_behind(intent, shifted=shifted)
    if now not in left:
        return f"{who}its traffic goes to {_said(now)}, and we left it at {_said(left[0])}"
    return ""


def _ours_or_before(intent: Intent, live: Live) -> bool:
    """Whether the configuration is the one before the change, or the one that it made.

    Where the number of instances stands beside the template, an undo leaves it alone unless the change set it, and so
    does whoever scaled the service since. The cards of a machine that is off are those of its last read, and they come
    with the type: where that is what changed, type, CPUs and memory say whose it is.
    """
    before = intent.prior_config
    if before is None:
        return True
    if not live.template_scales and not any(isinstance(a, SetScaling | Lifecycle) for a in intent.actions):
        before = before.with_(min_instances=live.config.min_instances, max_instances=live.config.max_instances)
    found, ours = live.config, [before, applied(before, intent.actions)]
    if any(isinstance(a, SetInstanceType) for a in intent.actions):
        found, *ours = (c.with_(accelerator=None, accelerator_count=1) for c in (found, *ours))
    return found in ours


def _left_behind(intent: Intent, *, shifted: bool) -> list[Counter[str]]:
    """Return the shares of the traffic that our effects may have left, the likeliest first."""
    try:
        prior = _TRAFFIC.validate_json(intent.prior_traffic)
    except ValidationError:
        return [Counter()]  # what was there cannot be read: nothing but a service without traffic is known
    if not intent.staged:
        return [_shares(prior)]
    before = _shares(t.with_(revision=t.revision or intent.prior_revision) for t in prior)
    if not shifted:
        return [before]
    ours = Traffic(revision=intent.revision, percent=100)
    return [_shares((ours,)), _shares((Traffic(percent=100),)), before]  # the latest, where the policy followed it


def _shares(traffic: Iterable[Traffic]) -> Counter[str]:
    shares: Counter[str] = Counter()
    for target in traffic:
        if target.percent:
            shares[target.revision or "the latest"] += target.percent
    return shares


def _said(shares: Counter[str]) -> str:
    return ", ".join(f"{name} ({percent} %)" for name, percent in shares.items()) or "nothing"
