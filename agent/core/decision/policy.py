"""Policy says what may be changed, by whose word, how often; doubt refuses, and an empty selector selects nothing."""

import re
import tomllib
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final, get_args

from pydantic import Field, ValidationError, field_validator

from agent.core.decision import value_form as flag_form
from agent.core.decision.decision import Channel
from agent.core.plan.action import (
    Action,
    ForPerson,
    Lifecycle,
    LifecycleOperation,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetLivenessProbe,
    SetModel,
    SetResources,
    SetScaling,
    SetStartupProbe,
    SetVolumeOptions,
)
from agent.core.plan.lifecycle import ends_service, lifecycle_of
from agent.core.service.container_args import flag_map
from agent.core.service.serving import ServingConfig
from agent.core.value import Value, digest
from agent.errors import PolicyRefused, SettingsRejected

NEVER_FLAGS: Final = frozenset(
    {"trust-remote-code", "api-key", "ssl-keyfile", "ssl-certfile", "download-dir", "allowed-local-media-path",
     "chat-template", "config", "middleware", "tool-parser-plugin", "reasoning-parser-plugin", "worker-cls",
     "worker-extension-cls", "model-loader-extra-config", "hf-overrides", "hf-token", "lora-modules", "model",
     "tokenizer", "revision", "code-revision", "scheduler-cls", "enable-sleep-mode", "logits-processors"}
)  # fmt: skip
"""Flags that load code, open files or carry credentials; no policy can allow them."""

NEVER_ENV: Final = (
    "TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL", "CREDENTIALS", "PROXY", "ENDPOINT", "PLUGINS", "PATH",
    "PRELOAD", "LD", "BASH", "PYTHON",
)  # fmt: skip
"""Parts of names of variables that carry credentials, lead elsewhere or load code; no policy can allow them."""

KINDS: Final = frozenset(
    member.model_fields["kind"].default for member in get_args(get_args(Action)[0]) if member is not ForPerson
)

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

_OF_A_CREATION: Final = frozenset({"host", "model", "port", "served-model-name"})  # what no service is without
_SERVICE_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
_CLASS = re.compile(r"\[!?\]?[^\]]*\]")
_NO_SELECTOR: Final = "an empty selector and '*' select nothing, want names or patterns such as 'gemma4-*'"


class Mode(StrEnum):
    """Whose word an action needs."""

    NEVER = "never"
    PERSON = "person"
    AUTOMATIC = "automatic"


class Rule(Value):
    """One row: for which services and action kinds which mode; the first row that matches decides."""

    services: tuple[str, ...]
    kinds: tuple[str, ...]
    mode: Mode

    @field_validator("services", "kinds")
    @classmethod
    def _select_something(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """A row that selects nothing would leave a ``never`` without force, so it is a mistake and no row."""
        if not patterns:
            raise ValueError(_NO_SELECTOR)
        return _selectors(patterns)

    @field_validator("kinds")
    @classmethod
    def _known_kinds(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [k for k in kinds if not any(fnmatchcase(known, k) for known in KINDS)]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no kind of action, want some of {', '.join(sorted(KINDS))}")
        return kinds


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
    services: tuple[str, ...] = ()

    @field_validator("services")
    @classmethod
    def _no_star_alone(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Told when the file is read, not to the person whose yes does not count at night."""
        return _selectors(patterns)

    @property
    def identities(self) -> frozenset[str]:
        """Every word under which this person may appear, in lower case."""
        words = (self.name, self.slack, self.webhook, self.email, self.kubernetes)
        return frozenset(w.casefold() for w in words if w)


class Policy(Value):
    """What may be changed; without a flag, variable, accelerator or model on its lists none may be set.

    Attributes:
        flags: Form of the value by flag, see :mod:`agent.core.decision.value_form`.
        env: The same by variable.
        change_window_s: At most one change of a service in so many seconds.
        volume_options: Mount options that a volume may be given, as patterns.
        lifecycle: Names of the services that may be created, started, stopped and deleted; each in full, no pattern.
    """

    rules: tuple[Rule, ...] = ()
    approvers: tuple[Approver, ...] = ()
    change_window_s: float = Field(default=900, gt=0, le=2_592_000)
    changes_per_hour: int = Field(default=4, ge=0, le=1000)
    remedies_per_fingerprint: int = Field(default=2, ge=1)
    flags: dict[str, str] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    max_instances: int = Field(default=4, ge=1)
    max_concurrency: int = Field(default=1000, ge=1)
    max_cpu: float = Field(default=32, gt=0)
    max_memory_mib: int = Field(default=262_144, gt=0)
    probe_budget_s: int = Field(default=1800, ge=1)
    accelerators: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    volume_options: tuple[str, ...] = ()
    lifecycle: tuple[str, ...] = ()

    @field_validator("lifecycle")
    @classmethod
    def _whole_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        patterns = [name for name in names if not _SERVICE_NAME.fullmatch(name)]
        if patterns:
            raise ValueError(f"{patterns[0]!r} is no name of a service, want each name in full, without '*'")
        return names

    @field_validator("flags", "env")
    @classmethod
    def _good_forms(cls, forms: dict[str, str]) -> dict[str, str]:
        wrong = [f"{name}: {mistake}" for name, form in forms.items() if (mistake := flag_form.form_error(form))]
        wrong += [f"{name}: no policy can allow it" for name in forms if _never(name)]
        if wrong:
            raise ValueError("; ".join(wrong))
        return forms

    @field_validator("volume_options")
    @classmethod
    def _no_star_alone(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return _selectors(patterns)

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
        """What plans and approvals carry; another policy makes them void."""
        return digest(self)

    def attended(self) -> "Policy":
        """Return the same policy with a person's word wherever it says automatic."""
        asks = (r.model_copy(update={"mode": Mode.PERSON}) if r.mode is Mode.AUTOMATIC else r for r in self.rules)
        return self.model_copy(update={"rules": tuple(asks)})

    def mode(self, service: str, actions: tuple[Action, ...]) -> Mode:
        """Return the strictest mode that any of the actions needs; a person's word where no rule speaks."""
        modes = [self._mode(service, action) for action in actions]
        if Mode.NEVER in modes:
            return Mode.NEVER
        if any(isinstance(action, Lifecycle) or ends_service(action) for action in actions):
            return Mode.PERSON  # whatever a rule says
        return Mode.AUTOMATIC if modes and all(m is Mode.AUTOMATIC for m in modes) else Mode.PERSON

    def _mode(self, service: str, action: Action) -> Mode:
        if isinstance(action, ForPerson):
            return Mode.PERSON
        for rule in self.rules:
            if selects(rule.services, service) and selects(rule.kinds, action.kind):
                return rule.mode
        return Mode.PERSON

    def approver(self, channel: Channel, who: str) -> Approver | None:
        """Return the approver whom a channel proved to be there, or None: being in a channel makes nobody one."""
        field = _IDENTITY.get(channel)
        if field is None or not who:
            return None
        fold = str if channel is Channel.KUBERNETES else str.casefold  # the API server tells "Ada" from "ada"
        same = (a for a in self.approvers if (a_is := getattr(a, field)) and fold(a_is) == fold(who))
        return next(same, None)

    def approvers_of(self, service: str) -> tuple[Approver, ...]:
        """Return everybody who may decide about a service."""
        return tuple(approver for approver in self.approvers if selects(approver.services, service))

    def bars(self, channel: Channel, who: str, service: str) -> str:
        """Return why the word of somebody whom a channel proved does not count for a service, or nothing."""
        approver = self.approver(channel, who)
        if approver is None:
            kind = _SHOWN.get(channel, "e-mail")
            more = "; being in the channel is not enough" if channel is Channel.SLACK else ""
            return f"policy.toml names no approver with the {kind} {who!r}{more}"
        if not selects(approver.services, service):
            return f"policy.toml does not let {approver.name!r} decide about {service!r}"
        return ""

    def check(self, actions: tuple[Action, ...], service: str = "") -> None:
        """Refuse values that no approval can allow.

        Args:
            actions: What would be done.
            service: To which service; what is allowed by name is refused without one.

        Raises:
            PolicyRefused: A flag, variable or value is outside the bounds, whatever the plan says.
        """
        whole = len(actions) > 1 and lifecycle_of(actions) is not None
        for action in actions:
            why = "it stands alone, without another change" if whole else self._objection(action, service)
            if why:
                raise PolicyRefused(
                    f"action {action.kind!r} is not allowed",
                    why=why,
                    hint="change policy.toml, or make the change manually",
                )

    def _objection(self, action: Action, service: str) -> str | None:  # noqa: C901, PLR0911, PLR0912 - one answer for each kind
        match action:
            case SetFlag(name=name, value=value):
                return _listed(self.flags, name.replace("_", "-"), value, f"flag --{name.replace('_', '-')}")
            case SetEnv(name=name, value=value):
                return _listed(self.env, name, value, f"environment variable {name!r}")
            case SetStartupProbe(probe=probe) if probe.budget_s > self.probe_budget_s:
                return f"a probe budget of {probe.budget_s} s is above {self.probe_budget_s} s"
            case SetLivenessProbe(probe=None):
                return "a service without a liveness probe is not made by us"
            case SetScaling(max_instances=most) if most > self.max_instances:
                return f"{most} instances are above the limit of {self.max_instances}"
            case SetScaling(min_instances=least, max_instances=most) if least > most:
                return f"{least} instances at least and {most} at most cannot be"
            case Lifecycle() | SetScaling(max_instances=0):
                return self._lifecycle_objection(action, service)
            case SetAccelerator(accelerator=name) if name not in self.accelerators:
                return f"accelerator {name!r} is not on the list of the policy"
            case SetModel(model=name) if name not in self.models:
                return f"model {name!r} is not on the list of the policy"
            case SetVolumeOptions(options=options):
                strange = [o for o in options if not selects(self.volume_options, o)]
                return f"mount option {strange[0]!r} is not on the list of the policy" if strange else None
            case SetConcurrency(concurrency=held) if held > self.max_concurrency:
                return f"{held} requests at once are above the limit of {self.max_concurrency}"
            case SetResources(cpu=cpu, memory_mib=memory) | SetAccelerator(cpu=cpu, memory_mib=memory):
                small = 0 < cpu <= self.max_cpu and 0 < memory <= self.max_memory_mib
                return None if small else f"{cpu:g} CPUs and {memory} MiB are outside the limits of the policy"
            case _:
                return None

    def _lifecycle_objection(self, action: Lifecycle | SetScaling, service: str) -> str | None:
        if service not in self.lifecycle:
            what = action.operation if isinstance(action, Lifecycle) else "scaling to zero stops it; a stop"
            return f"{what} is allowed by name only: the list 'lifecycle' does not name {service!r}"
        if isinstance(action, SetScaling):
            return None if action.min_instances == 0 else "at least one instance and none at most cannot be"
        most = action.config.max_instances or 1 if action.config is not None else action.max_instances
        if action.operation is LifecycleOperation.DELETE and action.confirmed != service:
            typed = f"{action.confirmed[:80]!r} was typed" if action.confirmed else "nothing was typed"
            return f"a deletion wants the name of the service typed, {service!r}, and {typed}"
        if action.operation is not LifecycleOperation.STOP and most > self.max_instances:
            return f"{most} instances are above the limit of {self.max_instances}"
        return self._creation_objection(action.config) if action.config is not None else None

    def _creation_objection(self, config: ServingConfig) -> str | None:
        """Hold what is new to the same lists as what is changed."""
        if config.accelerator is not None and config.accelerator not in self.accelerators:
            return f"accelerator {config.accelerator!r} is not on the list of the policy"
        flags = flag_map((*config.command, *config.args))
        checked = [_listed(self.flags, n, v, f"flag --{n}") for n, v in flags.items() if n not in _OF_A_CREATION]
        checked += [_listed(self.env, e.name, e.value, f"environment variable {e.name!r}") for e in config.env]
        return next((why for why in checked if why), None)


def _never(name: str) -> bool:
    bare = name.replace("_", "-")
    return bare.lower() in NEVER_FLAGS or not set(bare.upper().split("-")).isdisjoint(NEVER_ENV)


def _listed(forms: dict[str, str], name: str, value: str | None, shown: str) -> str | None:
    if _never(name) or name not in forms:
        return f"{shown} is not on the allow-list"
    if value is not None and not flag_form.matches_form(forms[name], value):
        return f"{value[:80]!r} is no value of {shown}, want {forms[name]}"
    return None


def selects(patterns: tuple[str, ...], name: str) -> bool:
    """An empty selector selects nothing, and a pattern without a letter of its own is no selector."""
    return bool(name) and any(_names_something(p) and fnmatchcase(name, p) for p in patterns)


def _names_something(pattern: str) -> bool:
    """Whether a pattern holds a letter that must be there: ``[a-z]*`` and ``[!x]*`` are ``*`` in other words."""
    return bool(_CLASS.sub("", pattern).strip("*?"))


def _selectors(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if not all(_names_something(p) for p in patterns):
        raise ValueError(_NO_SELECTOR)
    return patterns


def parse_policy(text: str, *, default: Policy | None = None) -> Policy:
    """Read policy.toml.

    Args:
        text: The file.
        default: What holds for keys that the file does not name; an empty policy when None.

    Raises:
        SettingsRejected: All mistakes at once.
    """
    try:
        raw: dict[str, Any] = tomllib.loads(text)
        return Policy.model_validate((default.model_dump() if default else {}) | raw)
    except tomllib.TOMLDecodeError as error:
        raise SettingsRejected("policy.toml was not read", why=str(error), hint="correct the TOML syntax") from error
    except ValidationError as error:
        rows = "; ".join(f"{'.'.join(map(str, e['loc']))}: {_says(e['msg'])}" for e in error.errors())
        raise SettingsRejected(
            f"policy.toml has {error.error_count()} mistakes", why=rows, hint="see docs/policy.md for every key"
        ) from error


def _says(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return "want a list, such as ['gemma4-*']" if message == "Input should be a valid tuple" else message
