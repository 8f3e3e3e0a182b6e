"""Freeze windows and approvals in sentences: what every page, message and command says about them."""

from datetime import datetime
from zoneinfo import ZoneInfo

from agent.core.decision.approvals import Approvals
from agent.core.decision.decision import shown_name
from agent.core.decision.freeze import FrozenSpan, Stops

STOPS: dict[Stops, str] = {
    Stops.AUTOMATIC: "nothing is applied without a person's approval",
    Stops.NON_EMERGENCY: "changes that somebody asked for are not applied; plans that fix an incident are",
    Stops.APPROVALS: "no change is applied",
}


def freeze_text(span: FrozenSpan) -> str:
    """Return one freeze window in a sentence without a full stop: when, what it stops, why, and whom to ask."""
    owner = f"owner {span.owner}" + (f"; {span.break_glass} may break the glass" if span.break_glass else "")
    return f"{span.name}, {_local(span.starts, span)} to {_local(span.ends, span)} {span.zone}: {span.reason} ({owner})"


def freeze_lines(approvals: Approvals | None, now: datetime) -> tuple[str, ...]:
    """Return a sentence for each freeze window that overlaps the time in which a plan can be answered."""
    if approvals is None:
        return ()
    return tuple(f"{_when(span, now)} {freeze_text(span)}. In it, {STOPS[span.stops]}." for span in approvals.freezes)


def budget_line(approvals: Approvals | None) -> str:
    """Return why a plan cannot be approved for its cost, in a sentence; empty where it keeps the budgets."""
    over = approvals.over_budget if approvals is not None else ""
    return f"Over budget: {over}." if over else ""


def limit_lines(approvals: Approvals | None, now: datetime) -> tuple[str, ...]:
    """Return every sentence that people should read before they press: budget, freeze windows, who was told."""
    said = (budget_line(approvals), *freeze_lines(approvals, now), reminded_text(approvals))
    return tuple(line for line in said if line)


def refusal_text(span: FrozenSpan) -> str:
    """Return why a change is stopped, without a full stop."""
    return f"the freeze window {freeze_text(span)}, stops it"


def approvals_text(approvals: Approvals | None) -> str:
    """Return how far the approvals are, in a sentence; empty where one person is enough."""
    if approvals is None or approvals.needed < 2:
        return ""
    by = f": {', '.join(shown_name(a.name, verified=a.verified) for a in approvals.given)}"
    have = approvals.given_text + (by if approvals.given else "")
    if not approvals.missing:
        return f"{have}."
    count = "one more" if approvals.missing == 1 else f"{approvals.missing} more"
    of = f" of {_names(approvals.may_add)}" if approvals.may_add else ""
    return f"{have}; needs {count if approvals.given else approvals.missing}{of}."


def policy_line(approvals: Approvals | None) -> str:
    """Return in one line what policy asks for and whether a freeze window or a budget stands in the way."""
    if approvals is None:
        return "Policy: one approval"
    count = "one approval" if approvals.needed < 2 else approvals.given_text
    frozen = f"freeze window {approvals.freezes[0].name}" if approvals.freezes else "no freeze window"
    return f"Policy: {count}; {frozen}" + ("; over budget" if approvals.over_budget else "")


def reminded_text(approvals: Approvals | None) -> str:
    """Return which groups were told because nobody answered, in a sentence; empty where none was."""
    notified = approvals.escalations[: approvals.groups_notified] if approvals is not None else ()
    if not notified:
        return ""
    groups = " and ".join(f"{e.group} ({', '.join(e.names)})" if e.names else e.group for e in notified)
    return f"Nobody answered, so {groups} {'was' if len(notified) == 1 else 'were'} told."


def _when(span: FrozenSpan, now: datetime) -> str:
    return "Freeze window now:" if span.holds_at(now) else "Freeze window to come:" if now < span.starts else "Over:"


def _local(at: datetime, span: FrozenSpan) -> str:
    return f"{at.astimezone(ZoneInfo(span.zone)):%a %Y-%m-%d %H:%M}"


def _names(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
