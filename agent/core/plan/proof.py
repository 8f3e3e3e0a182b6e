"""Proof: how we know that a plan's memory suffices, or what would have to be known first."""

from enum import StrEnum
from typing import Final, assert_never

from agent.core.plan.action import (
    Action,
    ForPerson,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetInstanceType,
    SetLivenessProbe,
    SetModel,
    SetProgressDeadline,
    SetResources,
    SetScaling,
    SetStartupProbe,
    SetStrategy,
    SetTerminationGrace,
    SetVolumeOptions,
)
from agent.core.value import Value


class Proof(StrEnum):
    """How it is known that the memory suffices."""

    NOT_NEEDED = "not_needed"  # nothing that the plan changes takes memory
    COMPUTED = "computed"  # it fits, at the pessimistic end of every term
    MEASURED = "measured"  # the engine printed what it needs and what it has, at the same start with the same flags
    NONE = "none"  # nobody knows; a task for a person, never offered for approval


OFFERED: Final = frozenset({Proof.NOT_NEEDED, Proof.COMPUTED, Proof.MEASURED})


class Memory(StrEnum):
    """Which memory a change can take more of."""

    DEVICE = "device"
    CONTAINER = "container"


class ProofFigure(Value):
    """One figure that proves a plan.

    Attributes:
        name: What it is, such as "Estimated maximum length".
        value: With its unit, such as "32,640 tokens".
        line: The log line that it was read from, untrusted text; None where it was computed.
        place: Where that line stands, as in ``Evidence`` of a diagnosis; None where it was computed.
        source: What a computed figure rests on; empty where the line says it.
    """

    name: str
    value: str
    line: str | None = None
    place: str | None = None
    source: str = ""


_DEVICE: Final = frozenset({Memory.DEVICE})
_CONTAINER: Final = frozenset({Memory.CONTAINER})
_BOTH: Final = _DEVICE | _CONTAINER
_NEITHER: Final[frozenset[Memory]] = frozenset()

KINDS: Final[dict[str, frozenset[Memory]]] = {
    "set_flag": _BOTH,  # unless the flag stands in FLAGS
    "set_env": _BOTH,  # unless the variable stands in VARIABLES
    "set_startup_probe": _NEITHER,
    "set_liveness_probe": _NEITHER,
    "set_resources": _CONTAINER,
    "set_scaling": _NEITHER,  # one more instance is the same instance again, with memory of its own
    "set_concurrency": _NEITHER,  # the pool is reserved when the server starts; what does not fit into it waits
    "set_accelerator": _BOTH,
    "set_instance_type": _BOTH,
    "set_model": _BOTH,
    "set_volume_options": _CONTAINER,  # a file cache of a mount can lie in memory
    "set_strategy": _NEITHER,
    "set_progress_deadline": _NEITHER,
    "set_termination_grace": _NEITHER,
    "restart": _NEITHER,
    "lifecycle": _BOTH,  # a creation; a start, a stop or a deletion runs nothing that was not there before
    "for_person": _BOTH,  # unless the fix stands in TASKS
}
"""The most that an action of each kind can touch; a kind that is missing here cannot be proved."""

FLAGS: Final[dict[str, frozenset[Memory]]] = {
    **dict.fromkeys(
        ("chat-template", "enable-auto-tool-choice", "host", "port", "reasoning-parser", "served-model-name",
         "tool-call-parser"),
        _NEITHER,
    ),
    **dict.fromkeys(("load-format", "safetensors-load-strategy", "swap-space"), _CONTAINER),
    **dict.fromkeys(
        ("async-scheduling", "attention-backend", "block-size", "cudagraph-capture-sizes", "disable-custom-all-reduce",
         "enable-chunked-prefill", "enable-prefix-caching", "enforce-eager", "gpu-memory-utilization",
         "kv-cache-dtype", "kv-cache-memory-bytes", "language-model-only", "limit-mm-per-prompt",
         "max-cudagraph-capture-size", "max-model-len", "max-num-batched-tokens", "max-num-seqs",
         "no-async-scheduling", "no-enable-chunked-prefill", "no-enable-prefix-caching"),
        _DEVICE,
    ),
}  # fmt: skip
"""What a vLLM flag touches; any other flag may touch both. A parser of tools or templates works on text alone.

Offload pins host memory, and each tensor-parallel worker is a process with host memory of its own, so both are left to
the default. Source: vllm/config and vllm/v1/worker of 0.32.0, read 2026-11-21.
"""

VARIABLES: Final[frozenset[str]] = frozenset(
    {"VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "VLLM_LOGGING_LEVEL", "VLLM_RPC_TIMEOUT",
     "HF_HUB_OFFLINE", "HF_HUB_DOWNLOAD_TIMEOUT", "TRANSFORMERS_OFFLINE", "NCCL_DEBUG"}
)  # fmt: skip
"""Variables that take no memory: time limits, log levels, and whether the hub is asked. Any other may touch both."""

TASKS: Final[frozenset[str]] = frozenset(
    {"fix_quota", "fix_auth_token", "fix_mount_permissions", "fix_image_or_driver", "fix_network", "fix_network_nccl",
     "fix_command_line", "fix_cache_path", "fix_probe_path", "redownload_weights", "increase_disk", "change_zone",
     "collect_container_logs", "none_client_side", "none_code_bug", "none_benign", "increase_startup_probe",
     "relax_liveness_probe", "scale_out", "restart", "set_strategy"}
)  # fmt: skip
"""Fixes of the vocabulary that change nothing about a server's memory, done by a person."""


def affected_memory(actions: tuple[Action, ...]) -> frozenset[Memory]:
    """Return which memory a plan can take more of; none means that no proof is needed."""
    return frozenset().union(*map(_touched, actions))


def _touched(action: Action) -> frozenset[Memory]:  # noqa: PLR0911 - one answer for each kind of action
    most = KINDS.get(action.kind, _BOTH)
    match action:
        case SetFlag(name=name):
            return FLAGS.get(name.replace("_", "-"), most)
        case SetEnv(name=name):
            return _NEITHER if name in VARIABLES else most
        case SetVolumeOptions(options=options):
            return most if any("cache" in option for option in options) else _NEITHER
        case ForPerson(action=fix):
            return _fix_touches(fix, most)
        case SetStartupProbe() | SetLivenessProbe() | SetScaling() | SetConcurrency() | Restart():
            return most
        case SetResources() | SetAccelerator() | SetInstanceType() | SetModel() | SetStrategy():
            return most
        case SetProgressDeadline() | SetTerminationGrace():
            return most
        case Lifecycle(operation=LifecycleOperation.CREATE):
            return most
        case Lifecycle():
            return _NEITHER
    assert_never(action)


def _fix_touches(fix: str, most: frozenset[Memory]) -> frozenset[Memory]:
    words = fix.split()
    if words[:1] == ["set_flag"] and len(words) > 1:
        return FLAGS.get(words[1].replace("_", "-"), most)
    if words[:1] == ["set_env"] and len(words) > 1:
        return _NEITHER if words[1] in VARIABLES else most
    return _NEITHER if words[:1] and words[0] in TASKS else most
