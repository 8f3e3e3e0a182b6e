"""The rows of a policy: rules, approvers and limits of a group of services."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, Self, get_args

from pydantic import Field, field_validator, model_validator

from agent.core.decision.decision import UNVERIFIED
from agent.core.decision.freeze import Freeze
from agent.core.decision.selector import Patterns, Selector, covers, selects
from agent.core.plan.action import Action, ForPerson
from agent.core.value import Value

MOST_APPROVALS: Final = 5

SWEEP: Final = "sweep"
"""The kind of a load measurement, which is approved by the rules of a change and changes nothing."""
KINDS: Final = frozenset(
    [m.model_fields["kind"].default for m in get_args(get_args(Action)[0]) if m is not ForPerson] + [SWEEP]
)


class Mode(StrEnum):
    """Whose word an action needs."""

    NEVER = "never"
    PERSON = "person"
    AUTOMATIC = "automatic"


class Rule(Value):
    """One row: for which services and action kinds which mode; the first row that matches decides.

    Attributes:
        approvals: How many people must approve.
        groups: The groups whose members may approve, in the order in which they are told; empty is every approver.
        self_approve: Whether who asked for a change may approve it; None is the default of the installation.
        escalate_after_min: After how many minutes without an answer the next group is told; None is never.
    """

    services: Selector
    kinds: Selector
    mode: Mode
    approvals: int = Field(default=1, ge=1, le=MOST_APPROVALS)
    groups: tuple[str, ...] = ()
    self_approve: bool | None = None
    escalate_after_min: float | None = Field(default=None, gt=0, le=1440)

    @field_validator("kinds")
    @classmethod
    def _known_kinds(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [k for k in kinds if not any(fnmatchcase(known, k) for known in KINDS)]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no kind of action, want some of {', '.join(sorted(KINDS))}")
        return kinds

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        asks = self.approvals > 1 or self.groups or self.self_approve is not None or self.escalate_after_min is not None
        if self.mode is not Mode.PERSON and asks:
            raise ValueError(f"mode {self.mode.value!r} asks nobody, so it takes no approvals, groups or escalation")
        if self.escalate_after_min is not None and len(self.groups) < 2:
            raise ValueError("escalate_after_min tells the next group, so it wants at least two groups")
        return self


class Approver(Value):
    """Someone whose yes counts, named as the channel proves it.

    Attributes:
        slack: User id.
        webhook: Identity of a sender.
        email: Address of an ID token or of an assertion of Identity-Aware Proxy.
        kubernetes: Username as TokenReview gives it, such as ``system:serviceaccount:sre-agent:ada``.
    """

    name: str = Field(min_length=1, max_length=80)
    slack: str | None = Field(default=None, pattern=r"^[UW][A-Z0-9]{2,20}$")
    webhook: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")
    email: str | None = Field(default=None, pattern=r"^[^@\s]+@[^@\s]+$")
    kubernetes: str | None = Field(default=None, pattern=r"^\S{1,253}$")
    services: Patterns = ()  # told when the file is read, not to the person whose yes does not count at night

    @field_validator("name")
    @classmethod
    def _is_somebody(cls, name: str) -> str:
        """Whoever was called so would count as the same person as everybody whom no channel proves."""
        if name == UNVERIFIED:
            raise ValueError(f"{name!r} is nobody's name")
        return name

    @property
    def identities(self) -> frozenset[str]:
        """Every word under which this person may appear, in lower case."""
        words = (self.name, self.slack, self.webhook, self.email, self.kubernetes)
        return frozenset(w.casefold() for w in words if w)


class ServiceLimit(Value):
    """Limits of a group of services, beside those over all; the strictest that matches counts.

    Attributes:
        changes_per_hour: Over all services of the group together.
        change_window_s: At most one change of a service of the group in so many seconds.
        max_instances: Of one service.
        budget_usd_per_h: What all services of the group together may cost, USD per hour.
    """

    name: str = Field(min_length=1, max_length=60)
    services: Selector
    changes_per_hour: int | None = Field(default=None, ge=0, le=1000)
    change_window_s: float | None = Field(default=None, gt=0, le=2_592_000)
    max_instances: int | None = Field(default=None, ge=1)
    budget_usd_per_h: float | None = Field(default=None, gt=0)

    def covers(self, service: str) -> bool:
        """Whether it is about a service."""
        return selects(self.services, service)

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if (self.changes_per_hour, self.change_window_s, self.max_instances, self.budget_usd_per_h) == (None,) * 4:
            raise ValueError("want changes_per_hour, change_window_s, max_instances or budget_usd_per_h")
        return self


def contradictions(
    *,
    rules: Mapping[int, Rule],
    approvers: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    freezes: Mapping[int, Freeze],
) -> list[str]:
    """Return what the rows of a policy say against each other, one line for each.

    Args:
        rules: The rows that are good by themselves, by their place in the file.
        approvers: Names of the approvers.
        groups: Names of their members.
        freezes: The windows that are good by themselves, by their place in the file.
    """
    known = [n for n in freezes if freezes[n].break_glass]
    return [
        *(f"groups.{g}: it is empty, want names of approvers" for g, members in groups.items() if not members),
        *(
            f"groups.{g}: {name!r} is no approver, want the name of an [[approvers]] entry"
            for g, members in groups.items()
            for name in dict.fromkeys(members)
            if name not in approvers
        ),
        *(f"rules.{n}.groups: {_no_group(g, groups)}" for n, r in rules.items() for g in r.groups if g not in groups),
        *(
            f"freezes.{n}.break_glass: {_no_group(freezes[n].break_glass, groups)}"
            for n in known
            if freezes[n].break_glass not in groups
        ),
        *(f"freezes.{n}.name: {name!r} stands in two windows" for n, name in _twice(freezes)),
        *_too_few(rules, approvers, groups),
        *_hidden(rules),
    ]


def _no_group(name: str, groups: Mapping[str, Sequence[str]]) -> str:
    return f"{name!r} is no group, [groups] has {', '.join(sorted(groups)) or 'none'}"


def _twice(freezes: Mapping[int, Freeze]) -> list[tuple[int, str]]:
    names = [f.name for f in freezes.values()]
    return [(n, f.name) for place, (n, f) in enumerate(freezes.items()) if f.name in names[:place]]


def _too_few(rules: Mapping[int, Rule], approvers: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Rules that ask for more people than there are."""
    said = []
    for number, rule in rules.items():
        people = {name for group in rule.groups for name in groups.get(group, ())} if rule.groups else set(approvers)
        if rule.approvals > 1 and len(people) < rule.approvals:
            said.append(f"rules.{number}.approvals: {rule.approvals} people must approve, and {len(people)} may")
    return said


def _hidden(rules: Mapping[int, Rule]) -> list[str]:
    """Rules that never decide, because an earlier one says something else about all that they select."""
    said = []
    for number, rule in rules.items():
        for before, earlier in rules.items():
            selected = {"services": rule.services, "kinds": rule.kinds}
            if before >= number or earlier.with_(**selected) == rule:
                continue
            if covers(earlier.services, rule.services) and covers(earlier.kinds, rule.kinds):
                said.append(f"rules.{number}: rule {before} selects all of it and says something else; put it above")
                break
    return said
