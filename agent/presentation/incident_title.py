"""The headline of an incident: what broke and where it stands, in one sentence that can be read on a lock screen."""

from datetime import datetime

from agent.core.change.execution import Change, present_change
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Plan
from agent.core.plan.proof import OFFERED, Proof
from agent.presentation.phase_words import phase_words
from agent.presentation.request_text import request_title
from agent.presentation.standing import class_words, presented_phase

TROUBLES: dict[str, str] = {
    "gpu_oom_weights": "out of GPU memory while loading",
    "gpu_oom_profile": "out of GPU memory while starting",
    "gpu_oom_runtime": "out of GPU memory while serving",
    "kv_cache_insufficient": "no room for the KV cache",
    "gpu_memory_occupied": "GPU memory is held by another process",
    "host_oom": "out of main memory",
    "startup_probe_failed": "startup probe failed before the server was ready",
    "port_not_listening": "nothing listens on its port",
    "weights_unreadable": "the weights cannot be read",
    "model_access_denied": "access to the model is denied",
    "model_not_found": "the model was not found",
    "unsupported_architecture": "this vLLM cannot run the model",
    "unsupported_dtype_or_quant": "dtype or quantization is not supported here",
    "cuda_driver_mismatch": "CUDA and driver do not match",
    "no_gpu_visible": "no GPU is visible",
    "gpu_hardware_fault": "GPU hardware fault",
    "shm_too_small": "shared memory is too small",
    "nccl_failure": "GPUs cannot communicate (NCCL)",
    "tp_shape_mismatch": "the model does not divide by the parallel size",
    "context_length_exceeded": "requests exceed the context length",
    "queue_saturation": "more requests than it can take",
    "tool_parser_error": "tool calls are not understood",
    "chat_template_error": "the chat template fails",
    "quota_exceeded": "no quota or no free accelerator",
    "image_pull_failed": "the image cannot be pulled",
    "engine_dead": "the server ended",
    "engine_hang": "the engine hangs",
    "illegal_memory_access": "illegal memory access",
    "disk_full": "a disk is full",
    "tpu_hbm_oom": "out of TPU memory",
    "invalid_flag": "a startup flag is refused",
    "network_timeout": "a server that it needs does not answer",
    "rollout_deadlock_no_spare_gpu": "the rollout waits for a GPU that the old replica holds",
    "benign": "looks like trouble and is none",
}
"""What broke, by failure class, in the words of a headline."""


def trouble_words(class_: str) -> str:
    """Return what broke in the words of a headline, or the class itself where it has none."""
    return TROUBLES.get(class_, class_words(class_))


def incident_title(incident: Incident, now: datetime) -> str:
    """Return the headline, such as ``gemma4-31b: out of GPU memory while loading; one fix fits``.

    No text of a log is in it, and no full stop at its end.

    Args:
        incident: Its present state.
        now: The time, UTC: a plan that nobody may answer any more does not wait.
    """
    return f"{incident.service}: {trouble_of(incident)}; {_now(incident, presented_phase(incident, now))}"


def trouble_of(incident: Incident) -> str:
    """Return what broke in a few words; of a request who asked for it; that it is not known yet, where it is not."""
    if incident.request is not None:
        return request_title(incident.request)
    if incident.diagnosis is None:
        return "something is wrong, cause not known yet"
    if incident.cause == "unknown":
        return "the server ended, cause unknown" if incident.diagnosis.unasked_end else "failure of unknown cause"
    return TROUBLES.get(incident.cause, class_words(incident.cause))


def _now(incident: Incident, phase: Phase) -> str:
    plan, said = incident.plan, phase_words(phase, incident).headline
    if incident.request is not None:
        return said
    if phase is Phase.ESCALATED and incident.replan is not None:
        return "another plan is being made"
    if phase in {Phase.PLANNED, Phase.ASKED} and plan is not None:
        return _offer(incident, plan)
    task = plan is not None and plan.by_person
    never_made = phase is Phase.ROLLED_BACK and not task and present_change(incident.execution) is Change.NONE
    return "the fix was never made" if never_made else said


def _offer(incident: Incident, plan: Plan) -> str:
    if plan.by_person:
        return "a task for a person"
    if plan.proof not in OFFERED:
        return "one fix, not proved"
    said = "one fix is ready" if plan.proof is Proof.NOT_NEEDED else "one fix fits"
    return said if incident.may_change else f"{said} (replay for analysis)"
