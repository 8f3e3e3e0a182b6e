"""The rules, groups and freeze windows of a policy in sentences, for the page that shows them."""

from datetime import datetime

from agent.core.decision.freeze import Freeze, FrozenSpan
from agent.core.decision.policy import Policy
from agent.core.decision.rule import Approver, Mode, Rule
from agent.core.value import Value
from agent.presentation.freeze_text import STOPS, freeze_text

_MODES = {Mode.AUTOMATIC: "automatic: no approval", Mode.NEVER: "never"}


class FreezeView(Value):
    """A freeze window as a page shows it.

    Attributes:
        label: ``now``, ``next`` or ``over``.
        says: When it is, why, and whom to ask; of the present occurrence, else of the next.
        stops: What it stops.
        services: About which services.
        then: When it comes again, or nothing.
    """

    label: str
    says: str
    stops: str
    services: str
    then: str = ""


def freeze_views(policy: Policy, now: datetime) -> tuple[FreezeView, ...]:
    """Return every freeze window: those that hold now first, then the next to come, then those that are over."""
    found = [(freeze, *freeze.present_and_next(now)) for freeze in policy.freezes]
    far = max((s.starts for _, *spans in found for s in spans if s is not None), default=now)
    ordered = sorted(found, key=lambda row: (row[1] is None, row[2] is None, row[2].starts if row[2] else far))
    return tuple(_view(*row) for row in ordered)


def _view(freeze: Freeze, present: FrozenSpan | None, coming: FrozenSpan | None) -> FreezeView:
    shown = present or coming
    return FreezeView(
        label="now" if present else "next" if coming else "over",
        says=f"{freeze_text(shown)}." if shown else f"{freeze.name}: {freeze.reason} (owner {freeze.owner}).",
        stops=f"In it, {STOPS[freeze.stops]}.",
        services="every service" if freeze.services is None else ", ".join(freeze.services),
        then=f"Next: {freeze_text(coming).partition(', ')[2].partition(': ')[0]}" if present and coming else "",
    )


def rule_text(rule: Rule) -> str:
    """Return what a rule asks for, in words."""
    if rule.mode is not Mode.PERSON:
        return _MODES[rule.mode]
    said = ["one person" if rule.approvals == 1 else f"{rule.approvals} different people"]
    if rule.groups:
        said.append(f"of {' or '.join(rule.groups)}")
    if rule.escalate_after_min is not None:
        said.append(f"the next group is told after {rule.escalate_after_min:g} min")
    if rule.self_approve is not None:
        said.append("who asked may approve" if rule.self_approve else "who asked may not approve")
    return "; ".join(said)


def approver_text(approver: Approver) -> str:
    """Return how an approver is known, without the identities themselves, and for what."""
    fields = ("slack", "email", "webhook", "kubernetes")
    channels = [name for name in fields if getattr(approver, name)]
    of = f"for {', '.join(approver.services)}" if approver.services else "for no service: may look and stop"
    return f"by {', '.join(channels)}; {of}"
