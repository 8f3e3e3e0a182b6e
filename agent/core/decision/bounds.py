"""The bounds of a policy: which flags, variables and values can be set at all, whatever anybody approves."""

import re
from typing import Final

from pydantic import Field, field_validator

from agent.core.decision import value_form as flag_form
from agent.core.decision.selector import Patterns, selects
from agent.core.plan.action import (
    Action,
    Lifecycle,
    LifecycleOperation,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetInstanceType,
    SetLivenessProbe,
    SetModel,
    SetResources,
    SetScaling,
    SetStartupProbe,
    SetVolumeOptions,
)
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.service.container_args import flag_map
from agent.core.service.serving import ServingConfig
from agent.core.value import Value

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

_OF_A_CREATION: Final = frozenset({"host", "model", "port", "served-model-name"})  # what no service is without
_SERVICE_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")


class Bounds(Value):
    """What may be set; without a flag, variable, accelerator or model on its lists none may be.

    Attributes:
        flags: Form of the value by flag, see :mod:`agent.core.decision.value_form`.
        env: The same by variable.
        volume_options: Mount options that a volume may be given, as patterns.
        lifecycle: Names of the services that may be created, started, stopped and deleted; each in full, no pattern.
    """

    flags: dict[str, str] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    max_instances: int = Field(default=4, ge=1)
    max_concurrency: int = Field(default=1000, ge=1)
    max_cpu: float = Field(default=32, gt=0)
    max_memory_mib: int = Field(default=262_144, gt=0)
    probe_budget_s: int = Field(default=1800, ge=1)
    accelerators: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    volume_options: Patterns = ()
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

    def out_of_bounds(self, actions: tuple[Action, ...], service: str) -> tuple[str, ...]:
        """Return for each action why no approval can allow it, or an empty text.

        Args:
            actions: What would be done, all of it at once.
            service: To which service; what is allowed by name is refused without one.
        """
        if len(actions) > 1 and lifecycle_of(actions) is not None:
            return ("it stands alone, without another change",) * len(actions)
        return tuple(self._objection(action, service) or "" for action in actions)

    def _objection(self, action: Action, service: str) -> str | None:  # noqa: C901, PLR0911, PLR0912 - one answer for each kind
        match action:
            case SetFlag(name=name, value=value):
                return _listed(self.flags, name.replace("_", "-"), value, f"flag --{name.replace('_', '-')}")
            case SetEnv(name=name, value=value):
                return _listed(self.env, name, value, f"environment variable {name!r}")
            case SetStartupProbe(probe=probe) if probe.budget_s > self.probe_budget_s:
                return self._probe_budget_text(probe.budget_s)
            case SetLivenessProbe(probe=None):
                return "a service without a liveness probe is not made by us"
            case SetScaling(max_instances=most) if most > self.max_instances:
                return f"{most} instances are above the limit of {self.max_instances}"
            case SetScaling(min_instances=least, max_instances=most) if least > most:
                return f"{least} instances at least and {most} at most cannot be"
            case Lifecycle() | SetScaling(max_instances=0):
                return self._lifecycle_objection(action, service)
            case SetAccelerator(accelerator=name) | SetInstanceType(accelerator=name) if name not in self.accelerators:
                return f"accelerator {name!r} is not on the list of the policy"
            case SetModel(model=name) if name not in self.models:
                return f"model {name!r} is not on the list of the policy"
            case SetVolumeOptions(options=options):
                strange = [o for o in options if not selects(self.volume_options, o)]
                return f"mount option {strange[0]!r} is not on the list of the policy" if strange else None
            case SetConcurrency(concurrency=held) if held > self.max_concurrency:
                return f"{held} requests at once are above the limit of {self.max_concurrency}"
            case (
                SetResources(cpu=cpu, memory_mib=memory)
                | SetAccelerator(cpu=cpu, memory_mib=memory)
                | SetInstanceType(cpu=cpu, memory_mib=memory)
            ):
                small = 0 < cpu <= self.max_cpu and 0 < memory <= self.max_memory_mib
                return None if small else _size_text(cpu, memory)
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
        over = self._size_objection(config) or self._probe_objection(config)
        if over:
            return over
        flags = flag_map((*config.command, *config.args))
        checked = [_listed(self.flags, n, v, f"flag --{n}") for n, v in flags.items() if n not in _OF_A_CREATION]
        checked += [_listed(self.env, e.name, e.value, f"environment variable {e.name!r}") for e in config.env]
        return next((why for why in checked if why), None)

    def _size_objection(self, config: ServingConfig) -> str | None:
        """A size that is left to the platform is within its own limits."""
        if config.concurrency is not None and config.concurrency > self.max_concurrency:
            return f"{config.concurrency} requests at once are above the limit of {self.max_concurrency}"
        cpu, memory = config.cpu, config.memory_mib
        good = (cpu is None or 0 < cpu <= self.max_cpu) and (memory is None or 0 < memory <= self.max_memory_mib)
        return None if good else _size_text(cpu, memory)

    def _probe_objection(self, config: ServingConfig) -> str | None:
        probe = config.startup_probe
        over = probe is not None and probe.budget_s > self.probe_budget_s
        return self._probe_budget_text(probe.budget_s) if probe is not None and over else None

    def _probe_budget_text(self, budget_s: int) -> str:
        return f"a probe budget of {budget_s} s is above {self.probe_budget_s} s"


def _size_text(cpu: float | None, memory_mib: int | None) -> str:
    said = [f"{cpu:g} CPUs"] * (cpu is not None) + [f"{memory_mib} MiB"] * (memory_mib is not None)
    return f"{' and '.join(said)} are outside the limits of the policy"


def _never(name: str) -> bool:
    bare = name.replace("_", "-")
    return bare.lower() in NEVER_FLAGS or not set(bare.upper().split("-")).isdisjoint(NEVER_ENV)


def _listed(forms: dict[str, str], name: str, value: str | None, shown: str) -> str | None:
    if _never(name) or name not in forms:
        return f"{shown} is not on the allow-list"
    if value is not None and not flag_form.matches_form(forms[name], value):
        return f"{value[:80]!r} is no value of {shown}, want {forms[name]}"
    return None
