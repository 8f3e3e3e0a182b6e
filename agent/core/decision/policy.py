"""Policy says what may be changed, by whose word, how often; doubt refuses, and an empty selector selects nothing."""

import tomllib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import Field, ValidationError, field_validator

from agent.core.decision.bounds import NEVER_ENV, NEVER_FLAGS, Bounds
from agent.core.decision.decision import Channel
from agent.core.decision.freeze import Freeze, FrozenSpan
from agent.core.decision.rule import SWEEP, Approver, Mode, Rule, ServiceLimit, contradictions
from agent.core.decision.selector import selects
from agent.core.plan.action import Action, ForPerson, Lifecycle, SetScaling
from agent.core.plan.lifecycle import ends_service
from agent.core.value import Value, digest
from agent.errors import PolicyRefused, SettingsRejected

__all__ = [
    "NEVER_ENV",
    "NEVER_FLAGS",
    "Approver",
    "Mode",
    "Policy",
    "Requirement",
    "Rule",
    "ServiceLimit",
    "parse_policy",
]

F = TypeVar("F", bound=Value)

_IDENTITY = {
    Channel.SLACK: "slack",
    Channel.WEBHOOK: "webhook",
    Channel.CONSOLE: "email",
    Channel.COMMAND_LINE: "email",
    Channel.KUBERNETES: "kubernetes",
}

_SHOWN = {
    Channel.SLACK: "Slack user id",
    Channel.WEBHOOK: "webhook identity",
    Channel.KUBERNETES: "Kubernetes username",
}


class Requirement(Value):
    """What the rules ask for before actions may be applied.

    Attributes:
        mode: The strictest of the actions'.
        rules: The row that decides about each action, counted from 0; None where none matches.
        approvals: How many people must approve.
        groups: Of each rule that names groups, those groups; an approver is in one of each row.
        self_approve: Whether who asked may approve; None is the default of the installation.
        escalate_after_min: After how many minutes the next group of the first row is told.
    """

    mode: Mode
    rules: tuple[int | None, ...] = ()
    approvals: int = 1
    groups: tuple[tuple[str, ...], ...] = ()
    self_approve: bool | None = None
    escalate_after_min: float | None = None


class Policy(Bounds):
    """What may be changed, by whose word, when and how often.

    Attributes:
        groups: Names of approvers by group.
        limits: Of groups of services, beside those over all.
        budget_usd_per_h: What all watched services together may cost after a change; None is no limit.
        change_window_s: At most one change of a service in so many seconds.
    """

    rules: tuple[Rule, ...] = ()
    approvers: tuple[Approver, ...] = ()
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    freezes: tuple[Freeze, ...] = ()
    limits: tuple[ServiceLimit, ...] = ()
    budget_usd_per_h: float | None = Field(default=None, gt=0)
    change_window_s: float = Field(default=900, gt=0, le=2_592_000)
    changes_per_hour: int = Field(default=4, ge=0, le=1000)
    remedies_per_fingerprint: int = Field(default=2, ge=1)

    @field_validator("approvers")
    @classmethod
    def _one_person_each(cls, approvers: tuple[Approver, ...]) -> tuple[Approver, ...]:
        """An identity that two entries share would make it doubtful who said yes."""
        seen: set[str] = set()
        for approver in approvers:
            if len(approver.identities) < 2:
                raise ValueError(f"{approver.name!r} has no identity, want slack, webhook, email or kubernetes")
            if seen & approver.identities:
                raise ValueError(f"{min(seen & approver.identities)!r} stands in two entries")
            seen |= approver.identities
        return approvers

    @property
    def digest(self) -> str:
        """What plans and approvals carry; another policy makes them void.

        Keys of a later version that a file does not use are left out, so that an upgrade voids nothing.
        """
        said = _unused_left_out(self.model_dump(mode="json"), _LATER)
        rows = {name: [_unused_left_out(row, later) for row in said[name]] for name, later in _LATER_IN_ROWS.items()}
        return digest(said | rows)

    def attended(self) -> "Policy":
        """Return the same policy with a person's word wherever it says automatic."""
        asks = (r.model_copy(update={"mode": Mode.PERSON}) if r.mode is Mode.AUTOMATIC else r for r in self.rules)
        return self.model_copy(update={"rules": tuple(asks)})

    def mode(self, service: str, actions: tuple[Action, ...]) -> Mode:
        """Return the strictest mode that any of the actions needs; a person's word where no rule speaks."""
        return self.requirement(service, actions).mode

    def requirement(self, service: str, actions: tuple[Action, ...]) -> Requirement:
        """Return what must be so before actions are applied to a service: the strictest of their rules."""
        whole = any(isinstance(action, Lifecycle) or ends_service(action) for action in actions)  # a person, always
        return self._strictest(tuple(self._rule(service, action) for action in actions), always_asks=whole)

    def sweep_requirement(self, service: str) -> Requirement:
        """Return what must be so before load is sent to a service; a person approves it, always.

        Where no rule names the kind ``sweep``, as many people must approve as the strictest rule of the service asks,
        and they must be in the groups that it names; of several that ask for as many, in a group of each.
        """
        number = self._rule_of_kind(service, SWEEP)
        if number is not None:
            return self._strictest((number,), always_asks=True)
        asked = [r for r in self.rules if r.mode is Mode.PERSON and selects(r.services, service)]
        most = max((rule.approvals for rule in asked), default=1)
        groups = (rule.groups for rule in asked if rule.approvals == most and rule.groups)
        return Requirement(
            mode=Mode.PERSON,
            rules=(None,),
            approvals=most,
            groups=tuple(dict.fromkeys(groups)),
            self_approve=False if False in {rule.self_approve for rule in asked} else None,
        )

    def _strictest(self, numbers: tuple[int | None, ...], *, always_asks: bool) -> Requirement:
        rules = [self.rules[n] if n is not None else None for n in numbers]
        modes = [rule.mode if rule is not None else Mode.PERSON for rule in rules]
        automatic = modes and not always_asks and all(m is Mode.AUTOMATIC for m in modes)
        asked = list(dict.fromkeys(rule for rule in rules if rule is not None and rule.mode is Mode.PERSON))
        said = {rule.self_approve for rule in asked} or {None}
        return Requirement(
            mode=Mode.NEVER if Mode.NEVER in modes else Mode.AUTOMATIC if automatic else Mode.PERSON,
            rules=numbers,
            approvals=max((rule.approvals for rule in asked), default=1),
            groups=tuple(rule.groups for rule in asked if rule.groups),
            self_approve=False if False in said else None if None in said else True,
            escalate_after_min=min((r.escalate_after_min for r in asked if r.escalate_after_min), default=None),
        )

    def _rule(self, service: str, action: Action) -> int | None:
        return None if isinstance(action, ForPerson) else self._rule_of_kind(service, action.kind)

    def _rule_of_kind(self, service: str, kind: str) -> int | None:
        matching = (n for n, r in enumerate(self.rules) if selects(r.services, service) and selects(r.kinds, kind))
        return next(matching, None)

    def approver(self, channel: Channel, who: str) -> Approver | None:
        """Return the approver whom a channel proved to be there, or None: being in a channel makes nobody one."""
        field = _IDENTITY.get(channel)
        if field is None or not who:
            return None
        fold = str if channel is Channel.KUBERNETES else str.casefold  # the API server tells "Ada" from "ada"
        same = (a for a in self.approvers if (a_is := getattr(a, field)) and fold(a_is) == fold(who))
        return next(same, None)

    def approvers_of(self, service: str, requirement: Requirement | None = None) -> tuple[Approver, ...]:
        """Return everybody who may decide about a service, or who may approve what the rules ask for."""
        of_service = (a for a in self.approvers if selects(a.services, service))
        return tuple(a for a in of_service if requirement is None or self._grouped(a, requirement))

    def member(self, group: str, approver: Approver | None) -> bool:
        """Whether somebody is in a group."""
        return approver is not None and approver.name in self.groups.get(group, ())

    def bars(self, channel: Channel, who: str, service: str, requirement: Requirement | None = None) -> str:
        """Return why the word of somebody whom a channel proved does not count for a service, or nothing."""
        approver = self.approver(channel, who)
        if approver is None:
            kind = _SHOWN.get(channel, "e-mail")
            more = "; being in the channel is not enough" if channel is Channel.SLACK else ""
            return f"policy.toml names no approver with the {kind} {who!r}{more}"
        if not selects(approver.services, service):
            return f"policy.toml does not let {approver.name!r} decide about {service!r}"
        if requirement is not None and not self._grouped(approver, requirement):
            named = " and ".join(" or ".join(repr(g) for g in row) for row in requirement.groups)
            return f"policy.toml asks for a member of {named}, and {approver.name!r} is none"
        return ""

    def _grouped(self, approver: Approver, requirement: Requirement) -> bool:
        return all(any(self.member(group, approver) for group in row) for row in requirement.groups)

    def frozen(self, service: str, at: datetime) -> tuple[FrozenSpan, ...]:
        """Return the freeze windows in which a service is at a moment."""
        return self.freezes_between(service, at, at + timedelta(microseconds=1))

    def freezes_between(self, service: str, since: datetime, until: datetime) -> tuple[FrozenSpan, ...]:
        """Return the freeze windows of a service that overlap a time, the first to begin first."""
        found = (span for freeze in self.freezes if freeze.covers(service) for span in freeze.spans(since, until))
        return tuple(sorted(found, key=lambda span: (span.starts, span.name)))

    def limits_of(self, service: str) -> tuple[ServiceLimit, ...]:
        """Return the limits of the groups of services to which one belongs."""
        return tuple(limit for limit in self.limits if limit.covers(service))

    def check(self, actions: tuple[Action, ...], service: str = "") -> None:
        """Refuse values that no approval can allow.

        Args:
            actions: What would be done.
            service: To which service; what is allowed by name is refused without one.

        Raises:
            PolicyRefused: A flag, variable or value is outside the bounds, whatever the plan says.
        """
        for action, why in zip(actions, self.objections(actions, service), strict=True):
            if why:
                raise PolicyRefused(
                    f"action {action.kind!r} is not allowed",
                    why=why,
                    hint="change policy.toml, or make the change manually",
                )

    def objections(self, actions: tuple[Action, ...], service: str) -> tuple[str, ...]:
        """Return for each action why no approval can allow it, or an empty text."""
        found = zip(actions, self.out_of_bounds(actions, service), strict=True)
        return tuple(why or self._over_limit(action, service) for action, why in found)

    def _over_limit(self, action: Action, service: str) -> str:
        if not isinstance(action, SetScaling | Lifecycle):
            return ""
        config = action.config if isinstance(action, Lifecycle) else None
        most = config.max_instances or 1 if config is not None else action.max_instances
        over = (m for m in self.limits_of(service) if m.max_instances is not None and most > m.max_instances)
        limit = next(over, None)
        return f"{most} instances are above the limit of {limit.max_instances} of {limit.name!r}" if limit else ""


def parse_policy(text: str, *, default: Policy | None = None) -> Policy:
    """Read policy.toml.

    Args:
        text: The file.
        default: What holds for keys that the file does not name; an empty policy when None.

    Raises:
        SettingsRejected: All mistakes at once.
    """
    try:
        raw: dict[str, Any] = (default.model_dump() if default else {}) | tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsRejected("policy.toml was not read", why=str(error), hint="correct the TOML syntax") from error
    mistakes = _contradictions(raw)
    cause: Exception | None = None
    try:
        policy = Policy.model_validate(raw)
    except ValidationError as error:
        mistakes = [f"{'.'.join(map(str, e['loc']))}: {_says(e['msg'])}" for e in error.errors()] + mistakes
        cause = error
    if mistakes:
        raise SettingsRejected(
            f"policy.toml has {len(mistakes)} mistakes",
            why="; ".join(mistakes),
            hint="see docs/policy.md for every key",
        ) from cause
    return policy


def _contradictions(raw: Mapping[str, Any]) -> list[str]:
    """What the rows say against each other, as far as each is good by itself."""
    approvers, groups = raw.get("approvers"), raw.get("groups")
    names = [row.get("name", "") for row in _rows(approvers) if isinstance(row, Mapping)]
    lists = {g: _rows(m) for g, m in groups.items()} if isinstance(groups, Mapping) else {}
    return contradictions(
        rules=_good(Rule, raw.get("rules")), approvers=names, groups=lists, freezes=_good(Freeze, raw.get("freezes"))
    )


def _good(form: type[F], rows: object) -> dict[int, F]:
    found = {}
    for number, row in enumerate(_rows(rows)):
        try:
            found[number] = form.model_validate(row)
        except ValidationError:
            continue  # told by itself
    return found


def _rows(found: object) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, list | tuple) else ()


def _says(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return "want a list, such as ['gemma4-*']" if message == "Input should be a valid tuple" else message


def _unused_left_out(data: dict[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in later or value != later[name]}


_LATER: Final[dict[str, Any]] = {"groups": {}, "freezes": [], "limits": [], "budget_usd_per_h": None, "lifecycle": []}
_LATER_IN_ROWS: Final[dict[str, dict[str, Any]]] = {
    "rules": {"approvals": 1, "groups": [], "self_approve": None, "escalate_after_min": None},
    "approvers": {"kubernetes": None},
}
"""Keys that 0.1.0 did not have, with what they say where nobody uses them."""
