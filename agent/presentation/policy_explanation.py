"""Why a change is allowed or not: one row per check, such as the kill switch, rules, bounds, freezes and approvals."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime

from agent.core.decision.decision import Channel
from agent.core.decision.freeze import FrozenSpan
from agent.core.decision.limit_use import LimitUse
from agent.core.decision.policy import Policy, Requirement
from agent.core.decision.rule import Approver, Mode
from agent.core.decision.self_approval import may_approve_own
from agent.core.incident.incident import Incident
from agent.core.incident.phase import BEFORE_DECISION, Phase
from agent.core.plan.action import Action, ForPerson
from agent.core.plan.plan import Plan
from agent.core.value import Value
from agent.presentation.freeze_text import STOPS, freeze_text

WITHIN = "within flags, lists and limits"


class Answer(StrEnum):
    """What a check found."""

    OK = "ok"
    NEEDS = "needs"  # a person, or time
    REFUSED = "refused"
    UNKNOWN = "unknown"  # it is asked when the change begins


class Row(Value):
    """One check and what it found."""

    check: str
    answer: Answer
    says: str


class Subject(Value):
    """The change that is checked.

    Attributes:
        asker: Who asked for it; None where it fixes an incident.
        asked_through: The channel of the request; None where nobody asked.
        unproved: Why nothing proves that it fits; None where that was not computed.
        over_budget: Why it would break a budget; None where that was not computed.
        given: Names of those who approved it.
        broken: Names of the freeze windows that the approvers overrode.
        policy: Digest of the policy under which the plan was made; None where there is no plan yet.
        closed: Why the plan can no longer be answered, whatever the policy says.
        expires_at: Until when the plan can be answered; None where there is no plan yet.
        stopped: Why no change may begin at all, such as the kill switch; None where the switch was not read.
        limits: The rate limits that apply, with what is used of each; None where that was not read.
        local: Whether the operator of this machine may approve without proof of identity.
    """

    service: str
    actions: tuple[Action, ...]
    asker: str | None = None
    asked_through: Channel | None = None
    unproved: str | None = None
    over_budget: str | None = None
    given: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    policy: str | None = None
    closed: str = ""
    expires_at: AwareDatetime | None = None
    stopped: str | None = None
    limits: tuple[LimitUse, ...] | None = None
    local: bool = True


def explain(policy: Policy, subject: Subject, *, at: datetime, by: str | None = None) -> tuple[Row, ...]:
    """Return the checks of a change in order, each with its finding.

    Args:
        policy: In force.
        subject: The change.
        at: When, UTC.
        by: Name or identity of an approver whose right to approve is checked too; None for none.
    """
    required = policy.requirement(subject.service, subject.actions)
    rows = [*_plan(subject, at), *_policy(policy, subject), *_switch(subject)]
    rows += [*_rules(policy, subject, required), *_bounds(policy, subject)]
    if all(isinstance(action, ForPerson) for action in subject.actions):
        return (*rows, _row("approvals", Answer.NEEDS, "a task for a person; the agent changes nothing"))
    rows += [_proof(subject), *_freezes(policy, subject, at), *_limits(policy, subject, at), _budget(policy, subject)]
    if required.mode is not Mode.PERSON:
        return tuple(rows)
    rows += _approvals(policy, subject, required)
    return (*rows, _by(policy, subject, required, by, at)) if by is not None else tuple(rows)


def is_allowed(rows: tuple[Row, ...]) -> bool:
    """Return whether no check refuses the change; it may still need an approval."""
    return all(row.answer is not Answer.REFUSED for row in rows)


def _row(check: str, answer: Answer, says: str) -> Row:
    return Row(check=check, answer=answer, says=says)


def _plan(subject: Subject, at: datetime) -> list[Row]:
    if subject.closed:
        return [_row("plan", Answer.REFUSED, subject.closed)]
    if subject.expires_at is None:
        return []
    until = f"{subject.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    if at >= subject.expires_at:
        return [_row("plan", Answer.REFUSED, f"it expired at {until}")]
    return [_row("plan", Answer.OK, f"it can be answered until {until}")]


def _switch(subject: Subject) -> list[Row]:
    if subject.stopped is None:
        return []
    return [_row("switch", Answer.REFUSED if subject.stopped else Answer.OK, subject.stopped or "changes are allowed")]


def _policy(policy: Policy, subject: Subject) -> list[Row]:
    if subject.policy is None:
        return []
    if subject.policy == policy.digest:
        return [_row("policy", Answer.OK, f"the plan was made under this policy, digest {policy.digest[:8]}")]
    made = f"the plan was made under digest {subject.policy[:8]}, this policy is {policy.digest[:8]}"
    return [_row("policy", Answer.REFUSED, f"{made}: its approvals are void, wait for a new plan")]


def _rules(policy: Policy, subject: Subject, required: Requirement) -> list[Row]:
    rows = []
    for action, number in zip(subject.actions, required.rules, strict=True):
        mode = policy.rules[number].mode if number is not None else Mode.PERSON
        which = (
            f"rules.{number} decides: {mode.value}" if number is not None else "no rule matches, so a person decides"
        )
        answer = {Mode.NEVER: Answer.REFUSED, Mode.PERSON: Answer.NEEDS, Mode.AUTOMATIC: Answer.OK}[mode]
        rows.append(_row("rule", answer, f"{_what(action)}: {which}"))
    requested = subject.asked_through is not None or (subject.asker is not None and subject.policy is None)
    if requested and required.mode is Mode.AUTOMATIC:
        rows.append(_row("rule", Answer.NEEDS, "somebody asked for it, so it is never automatic"))
    return rows


def _bounds(policy: Policy, subject: Subject) -> list[Row]:
    found = zip(subject.actions, policy.objections(subject.actions, subject.service), strict=True)
    said = [(f"{_what(action)}: {why or WITHIN}", why) for action, why in found]
    return [_row("bounds", Answer.REFUSED if why else Answer.OK, says) for says, why in said]


def _proof(subject: Subject) -> Row:
    if subject.unproved is None:
        return _row("proof", Answer.UNKNOWN, "computed when the plan is made: sre-agent change --dry-run")
    return _row(
        "proof",
        Answer.REFUSED if subject.unproved else Answer.OK,
        subject.unproved or "proved to fit, or no proof is needed",
    )


def _freezes(policy: Policy, subject: Subject, at: datetime) -> list[Row]:
    rows = [_frozen(span, subject) for span in policy.frozen(subject.service, at)]
    return rows or [_row("freeze", Answer.OK, f"no freeze window at {at:%Y-%m-%d %H:%M:%S} UTC")]


def _frozen(span: FrozenSpan, subject: Subject) -> Row:
    stopped = span.stops_change(asked_for=subject.asker is not None)
    broken = stopped and span.name in subject.broken
    answer = Answer.REFUSED if stopped and not broken else Answer.NEEDS
    more = "; who approved it broke the glass" if broken else ""
    return _row("freeze", answer, f"{freeze_text(span)}; {STOPS[span.stops]}{more}")


def _limits(policy: Policy, subject: Subject, at: datetime) -> list[Row]:
    if subject.limits is None:
        window_s, per_hour = policy.change_window_s, policy.changes_per_hour
        said = f"at most one change of {subject.service} every {window_s:g} s, {per_hour} an hour over all"
        more = "".join(f"; {limit.name} has its own" for limit in policy.limits_of(subject.service))
        return [_row("limits", Answer.UNKNOWN, f"{said}{more}; the control database was not read, so none is counted")]
    return [_row("limits", _limit_answer(use), limit_text(use, at)) for use in subject.limits]


def _limit_answer(use: LimitUse) -> Answer:
    if use.most <= 0:
        return Answer.REFUSED
    return Answer.NEEDS if use.free_at is not None else Answer.OK


def _budget(policy: Policy, subject: Subject) -> Row:
    budgets = [f"{policy.budget_usd_per_h:.2f} USD/h over all"] if policy.budget_usd_per_h is not None else []
    limits = policy.limits_of(subject.service)
    budgets += [f"{m.name}: {m.budget_usd_per_h:.2f} USD/h" for m in limits if m.budget_usd_per_h is not None]
    if not budgets:
        return _row("budget", Answer.OK, "no budget is set")
    if subject.over_budget:
        return _row("budget", Answer.REFUSED, subject.over_budget)
    kept = "kept now; looked at again before it is applied"
    known = subject.over_budget is not None
    says = kept if known else "prices are looked at when the plan is made"
    return _row("budget", Answer.OK if known else Answer.UNKNOWN, f"{'; '.join(budgets)}; {says}")


def _approvals(policy: Policy, subject: Subject, required: Requirement) -> list[Row]:
    have = f", given: {', '.join(subject.given)}" if subject.given else ""
    groups = " and ".join(" or ".join(row) for row in required.groups)
    needed = f"{required.approvals} needed" + (f", of {groups}" if groups else "") + have
    people = policy.approvers_of(subject.service, required)
    names = [a.name for a in people if not _is_asker(a, subject, required)]
    alone = not names and required.approvals == 1 and not required.groups and subject.local
    enough = len(names) >= required.approvals or alone
    says = ", ".join(names) or f"policy.toml names no approver{'; ' + _OPERATOR if alone else ''}"
    asks = ", because who asks does not approve" if len(names) < len(people) else ""
    who = says if enough else f"{says}: too few{asks}"
    return [
        _row("approvals", Answer.NEEDS, needed),
        _row("approvers", Answer.NEEDS if enough else Answer.REFUSED, who),
    ]


_OPERATOR: Final = "the operator of this machine (not verified) can approve"


def _by(policy: Policy, subject: Subject, required: Requirement, by: str, at: datetime) -> Row:
    approver = next((a for a in policy.approvers if by.casefold() in a.identities), None)
    if approver is None:
        return _row("by", Answer.REFUSED, f"{by!r} is no approver of the policy")
    if approver not in policy.approvers_of(subject.service, required):
        return _row("by", Answer.REFUSED, f"{approver.name!r} may not approve this for {subject.service!r}")
    if _is_asker(approver, subject, required):
        return _row("by", Answer.REFUSED, f"{approver.name!r} asked for it, and who asks does not approve")
    if approver.name in subject.given:
        return _row("by", Answer.REFUSED, f"{approver.name!r} approved it already, and counts once")
    return _row("by", Answer.OK, f"{approver.name!r} may approve it{_glass(policy, subject, approver, at)}")


def _glass(policy: Policy, subject: Subject, approver: Approver, at: datetime) -> str:
    """Say whether this person may break the glass of the freeze windows that stop it now."""
    asked_for = subject.asker is not None
    spans = [s for s in policy.frozen(subject.service, at) if s.stops_change(asked_for=asked_for)]
    spans = [s for s in spans if s.name not in subject.broken]
    if not spans:
        return ""
    may = all(policy.member(s.break_glass, approver) for s in spans)
    names = " and ".join(s.name for s in spans)
    return f", and {'may' if may else 'may not'} break the glass of {names}"


def _is_asker(approver: Approver, subject: Subject, required: Requirement) -> bool:
    asked = subject.asker is not None and subject.asker.casefold() in approver.identities
    rule, through = required.self_approve, subject.asked_through
    return asked and not may_approve_own(local=subject.local, verified=True, asked_through=through, rule=rule)


def _what(action: Action) -> str:
    values = action.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
    named = [f"{name}={value}" for name, value in values.items() if isinstance(value, str | int | float)][:3]
    return f"{action.kind} {' '.join(named)}".strip()


def subject_of_request(incident: Incident) -> Subject:
    """Return what is looked at of a request that has no plan yet."""
    request = incident.require_request()
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
        closed=_why_closed(incident, plan),
        expires_at=plan.expires_at,
    )


def _why_closed(incident: Incident, plan: Plan) -> str:
    if not incident.may_change and not plan.by_person:
        return "it belongs to a replay, which changes nothing; replay it with --live"
    if incident.phase in {Phase.PLANNED, Phase.ASKED}:
        return ""
    decision = incident.decision
    by = f": {decision.answer} by {decision.shown}" if decision is not None and decision.plan == plan.id else ""
    what = "request" if incident.request is not None else "incident"
    return f"it cannot be answered any more, the {what} is {incident.phase}{by}"


_HOUR_S = 3600


def limit_text(use: LimitUse, now: datetime) -> str:
    """Return one limit with what is used of it, in a sentence without a full stop.

    Args:
        use: The limit.
        now: The time, for the age of a change.
    """
    whose = f"{use.name}: " if use.name else ""
    said = f"{whose}{_allowed(use)}; {_made(use, now)}"
    if use.most <= 0:
        return f"{said}; no change may begin"
    return said if use.free_at is None else f"{said}; the next may begin at {use.free_at:%Y-%m-%d %H:%M:%S} UTC"


def _allowed(use: LimitUse) -> str:
    if use.service:
        return f"at most one change of {use.service} every {use.window_s:g} s"
    over = "" if use.name else " over all"
    return f"{use.most} an hour{over}" if use.window_s == _HOUR_S else f"{use.most} in {use.window_s:g} s{over}"


def _made(use: LimitUse, now: datetime) -> str:
    if not use.made:
        return "none made"
    ago_s = max(0.0, (now - use.made[-1]).total_seconds())
    return f"{len(use.made)} made, the last {_ago(ago_s)}"


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
