"""Where one error text has two opposite remedies, the numbers of the log decide which comes first."""

from collections.abc import Callable, Mapping

from agent.failures.finding import Value
from agent.failures.signature import Phase

Fixes = tuple[str, ...]
Rule = Callable[[Mapping[str, Value], Phase], Fixes | None]


def _number(fields: Mapping[str, Value], *names: str) -> float | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float):
            return float(value) / 1024 if name.endswith("_mib") else float(value)
    return None


def cache_blocks(fields: Mapping[str, Value], _phase: Phase) -> Fixes | None:
    """Nothing is left for the KV cache: raise the share if the card has room beyond it, else shrink the model's needs.

    The share is worth raising when weights and activations fit in what a share of 0.95 would give; a share of
    0.9 or more has nothing to give.
    """
    share = _number(fields, "gpu_memory_utilization")
    total = _number(fields, "gpu_total_gib", "gpu_total_mib")
    weights = _number(fields, "weights_gib", "weights_mib")
    activations = _number(fields, "activation_peak_gib", "activation_peak_mib") or 0.0
    shrink = (
        "set_flag max_model_len lower",
        "change_model_or_quantization",
        "set_flag max_num_batched_tokens lower",
        "set_flag tensor_parallel_size up",
        "set_flag gpu_memory_utilization up",
        "change_accelerator",
    )
    grow = (
        "set_flag gpu_memory_utilization up",
        "set_flag max_model_len lower",
        "set_flag max_num_batched_tokens lower",
        "change_model_or_quantization",
        "set_flag tensor_parallel_size up",
    )
    if total and weights is not None:
        room = total * 0.95 - weights - activations
        return grow if room > 0.03 * total and (share is None or share < 0.94) else shrink
    if share is not None:
        return grow if share < 0.9 else shrink
    return None


def max_model_len(fields: Mapping[str, Value], _phase: Phase) -> Fixes | None:
    """The log's own estimate of the longest context, where it gives one."""
    estimate = fields.get("estimated_max_model_len", fields.get("kv_cache_tokens"))
    if isinstance(estimate, int) and estimate > 0:
        return (
            f"set_flag max_model_len {estimate}",
            "set_flag max_model_len lower",
            "set_flag gpu_memory_utilization up",
            "set_flag kv_cache_dtype fp8",
            "set_flag tensor_parallel_size up",
        )
    return None


RULES: Mapping[str, Rule] = {"cache_blocks": cache_blocks, "max_model_len": max_model_len}
"""The rules a catalogue entry may name in ``decide``."""
