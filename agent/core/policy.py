"""Policy says what may be changed, by whose word, how often; doubt refuses, and an empty selector selects nothing."""

import tomllib
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field, ValidationError

from agent.core.action import (
    Action,
    ForPerson,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetLivenessProbe,
    SetResources,
    SetScaling,
    SetStartupProbe,
)
from agent.core.value import Value, digest
from agent.errors import PolicyRefused, SettingsRejected

NEVER_FLAGS = frozenset(
    {"trust-remote-code", "api-key", "ssl-keyfile", "ssl-certfile", "download-dir", "allowed-local-media-path"}
)


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


class Approver(Value):
    """Someone whose yes counts, named as the channel proves it (Slack user id, webhook identity, e-mail)."""

    name: str
    slack: str | None = None
    webhook: str | None = None
    email: str | None = None
    services: tuple[str, ...] = ()


class Policy(Value):
    """What may be changed."""

    rules: tuple[Rule, ...] = ()
    approvers: tuple[Approver, ...] = ()
    change_window_s: float = Field(default=900, gt=0)
    changes_per_hour: int = Field(default=4, ge=0)
    remedies_per_fingerprint: int = Field(default=2, ge=1)
    flags: tuple[str, ...] = (
        "max-model-len", "gpu-memory-utilization", "max-num-seqs", "max-num-batched-tokens", "tensor-parallel-size",
        "pipeline-parallel-size", "kv-cache-dtype", "dtype", "enforce-eager", "limit-mm-per-prompt",
        "language-model-only", "cpu-offload-gb", "kv-cache-memory-bytes", "block-size", "async-scheduling",
        "no-async-scheduling", "enable-chunked-prefill", "no-enable-chunked-prefill", "enable-prefix-caching",
        "no-enable-prefix-caching", "tool-call-parser", "enable-auto-tool-choice", "reasoning-parser",
        "served-model-name", "quantization", "load-format", "port", "host", "swap-space", "max-num-partial-prefills",
        "num-scheduler-steps", "disable-custom-all-reduce", "distributed-executor-backend", "attention-backend",
        "compilation-config", "cudagraph-capture-sizes", "safetensors-load-strategy",
    )  # fmt: skip
    env: tuple[str, ...] = (
        "VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_CPU_KVCACHE_SPACE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
        "VLLM_LOGGING_LEVEL", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_DEBUG",
        "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DOWNLOAD_TIMEOUT", "VLLM_RPC_TIMEOUT",
        "VLLM_ATTENTION_BACKEND", "VLLM_USE_V1", "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
        "VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
    )  # fmt: skip
    max_instances: int = Field(default=4, ge=1)
    probe_budget_s: int = Field(default=1800, ge=1)
    accelerators: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What plans and approvals carry; another policy makes them void."""
        return digest(self)

    def mode(self, service: str, actions: tuple[Action, ...]) -> Mode:
        """Return the strictest mode that any of the actions needs; a person's word where no rule speaks."""
        modes = [self._mode(service, action) for action in actions]
        if Mode.NEVER in modes:
            return Mode.NEVER
        return Mode.AUTOMATIC if modes and all(m is Mode.AUTOMATIC for m in modes) else Mode.PERSON

    def _mode(self, service: str, action: Action) -> Mode:
        if isinstance(action, ForPerson):
            return Mode.PERSON
        for rule in self.rules:
            if _selects(rule.services, service) and _selects(rule.kinds, action.kind):
                return rule.mode
        return Mode.PERSON

    def check(self, actions: tuple[Action, ...]) -> None:
        """Refuse values that no approval can allow.

        Raises:
            PolicyRefused: A flag, variable or value is outside the bounds, whatever the plan says.
        """
        for action in actions:
            why = self._objection(action)
            if why:
                raise PolicyRefused(
                    f"action {action.kind!r} is not allowed", why=why, mend="change policy.toml, or do it by hand"
                )

    def _objection(self, action: Action) -> str | None:  # noqa: PLR0911 - one answer for each kind of action
        match action:
            case SetFlag(name=name, value=value):
                return self._flag_objection(name.replace("_", "-"), value)
            case SetEnv(name=name):
                return None if name in self.env else f"environment variable {name!r} is not on the allow-list"
            case SetStartupProbe(probe=probe) if probe.budget_s > self.probe_budget_s:
                return f"a probe budget of {probe.budget_s} s is above {self.probe_budget_s} s"
            case SetLivenessProbe(probe=None):
                return "a service without a liveness probe is not made by us"
            case SetScaling(max_instances=most) if most > self.max_instances:
                return f"{most} instances are above the limit of {self.max_instances}"
            case SetAccelerator(accelerator=name) if name not in self.accelerators:
                return f"accelerator {name!r} is not on the list of the policy"
            case SetResources(cpu=cpu, memory_mib=memory) if cpu <= 0 or memory <= 0:
                return "resources must be positive"
            case SetConcurrency() | _:
                return None

    def _flag_objection(self, name: str, value: str | None) -> str | None:
        if name in NEVER_FLAGS or name not in self.flags:
            return f"flag --{name} is not on the allow-list"
        if value is not None and (len(value) > 512 or any(ord(c) < 32 for c in value)):
            return f"the value of --{name} is too long or holds control characters"
        return None


def _selects(patterns: tuple[str, ...], name: str) -> bool:
    """An empty selector selects nothing, and ``*`` alone is no selector."""
    return any(p != "*" and fnmatchcase(name, p) for p in patterns)


def parse_policy(text: str) -> Policy:
    """Read policy.toml.

    Raises:
        SettingsRejected: All mistakes at once.
    """
    try:
        raw: dict[str, Any] = tomllib.loads(text)
        return Policy.model_validate(raw)
    except tomllib.TOMLDecodeError as error:
        raise SettingsRejected("policy.toml was not read", why=str(error), mend="mend the TOML") from error
    except ValidationError as error:
        rows = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SettingsRejected(
            f"policy.toml has {error.error_count()} mistakes", why=rows, mend="see docs/policy.md for every key"
        ) from error
