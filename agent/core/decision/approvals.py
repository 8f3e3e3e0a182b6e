"""How a plan is asked about, as people see it: who may approve, who has, which freeze windows stand in the way."""

from datetime import datetime, timedelta

from pydantic import AwareDatetime

from agent.core.decision.decision import Ballot
from agent.core.decision.freeze import FrozenSpan, Stops
from agent.core.decision.policy import Policy, Requirement
from agent.core.value import Value


class Escalation(Value):
    """A further group that is notified where nobody answers.

    Attributes:
        group: Its name in the policy.
        at: When it is notified.
        names: Its members.
        slack: Their Slack ids, as far as the policy has them.
    """

    group: str
    at: AwareDatetime
    names: tuple[str, ...]
    slack: tuple[str, ...] = ()


class Approval(Value):
    """An approval that was given, for people to read; ``breaks`` names the freeze windows that it overrides."""

    name: str
    channel: str
    verified: bool
    at: AwareDatetime
    breaks: tuple[str, ...] = ()


class Approvals(Value):
    """How a plan is asked about. It is there to be read: policy and control database decide.

    Attributes:
        plan: The plan's id.
        needed: How many people must approve.
        given: By whom it was approved so far.
        approvers: Names of those who may; empty where the policy names nobody, as on one machine.
        escalations: The groups that are notified later, in order.
        groups_notified: How many of them were notified; stored as ``told`` before.
        freezes: The freeze windows that overlap the time in which it can be answered.
        asked_for: Whether somebody asked for this change; a plan that fixes an incident is an emergency.
        over_budget: Why it would break a budget, by the prices when it was asked about; empty where it keeps them.
    """

    plan: str
    needed: int = 1
    given: tuple[Approval, ...] = ()
    approvers: tuple[str, ...] = ()
    escalations: tuple[Escalation, ...] = ()
    groups_notified: int = 0
    freezes: tuple[FrozenSpan, ...] = ()
    asked_for: bool = False
    over_budget: str = ""

    @property
    def missing(self) -> int:
        """How many more people must approve."""
        return max(0, self.needed - len(self.given))

    @property
    def given_text(self) -> str:
        """How many of the approvals were given, such as ``1 of 2 approvals``."""
        return f"{len(self.given)} of {self.needed} approvals"

    @property
    def may_add(self) -> tuple[str, ...]:
        """Names of those who may still approve."""
        have = {approval.name for approval in self.given}
        return tuple(name for name in self.approvers if name not in have)

    @property
    def next_escalation(self) -> Escalation | None:
        """The next group that is to be notified, or None."""
        return self.escalations[self.groups_notified] if self.groups_notified < len(self.escalations) else None

    def with_ballot(self, ballot: Ballot) -> "Approvals":
        """Return it with the votes that stand."""
        given = (
            Approval(name=v.shown, channel=v.channel.value, verified=v.verified, at=v.at, breaks=v.breaks)
            for v in ballot.standing
        )
        return self.with_(given=tuple(given))


def approvals_of(
    policy: Policy,
    *,
    plan: str,
    service: str,
    requirement: Requirement,
    asked_at: datetime,
    expires_at: datetime,
    asked_for: bool,
) -> Approvals:
    """Return how a plan is asked about by a policy.

    Args:
        policy: In force.
        plan: Its id.
        service: What it would change.
        requirement: What the rules ask for.
        asked_at: When people see it first.
        expires_at: Until when it can be answered.
        asked_for: Whether somebody asked for the change.
    """
    later = requirement.groups[0][1:] if requirement.groups and requirement.escalate_after_min is not None else ()
    wait = timedelta(minutes=requirement.escalate_after_min or 0)
    people = policy.approvers_of(service, requirement)
    escalations = []
    for number, group in enumerate(later, start=1):
        members = [a for a in people if policy.member(group, a)]
        names, slack = tuple(a.name for a in members), tuple(a.slack for a in members if a.slack)
        escalations.append(Escalation(group=group, at=asked_at + number * wait, names=names, slack=slack))
    return Approvals(
        plan=plan,
        needed=requirement.approvals,
        approvers=tuple(a.name for a in people),
        escalations=tuple(e for e in escalations if e.at < expires_at),
        freezes=policy.freezes_between(service, asked_at, expires_at),
        asked_for=asked_for,
    )


def stops_automatic(freezes: tuple[FrozenSpan, ...], *, asked_for: bool) -> bool:
    """Whether any of these windows stops what nobody approves."""
    return any(s.stops is Stops.AUTOMATIC or s.stops_change(asked_for=asked_for) for s in freezes)
