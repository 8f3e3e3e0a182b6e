"""The first engine of vLLM: what falls back to it, the batch it chooses, and what its profile run takes.

Source: vllm/worker/{worker,model_runner,cache_engine}.py, engine/arg_utils.py and config.py of 0.6.3, 0.6.4.post1,
0.6.5, 0.6.6, 0.7.3 and 0.8.5, read 2026-11-26.
"""

from __future__ import annotations

from dataclasses import replace

from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, AttentionKind, ModelFacts
from agent.fit.version_rules import VersionRules

_AMPERE, _HOPPER = (8, 0), (9, 0)
_SERVED_BY_NEXT = (0, 10, 1)
"""0.10.0 still refused devices below compute capability 8.0 to the next engine, 0.10.2 does not."""

_BLACKWELL_BYTES = (0, 10, 0)
_LONG_CONTEXT = 32_768
_LEAST_BATCH = 2_048
_MULTIMODAL_BATCH, _POOLING_BATCH = 5_120, 32_768

SORTED_BYTES_PER_LOGIT = 38.8
"""What sorting in PyTorch takes: 1.19 GiB for 256 sequences of 128,256 words, 1.40 for 151,936 (0.6.5 to 0.11.0), 4.74
and 5.58 for 1,024 (0.10.2, 0.11.0). Up to 0.11 FlashInfer does it where it is installed, in less."""

_CACHED_BLOCKS = Bounds(low=0, best=GIB // 2, high=GIB)
"""What the allocator kept beyond the peak before 0.6.4: 2.0 GiB were gone for Llama 3 8B, 1.3 of them explained."""


def served_by(accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> VersionRules:
    """The rules of the engine that serves it: of 0.8 to 0.10.0 some devices and cache types leave the next engine.

    Source: _is_v1_supported_oracle in vllm/engine/arg_utils.py of 0.8.5, 0.9.2, 0.10.0 and 0.10.2,
    is_kv_cache_dtype_supported in vllm/platforms/cuda.py of 0.10.0, read 2026-11-26.
    """
    version = _numbers(rules)
    if not rules.has_v0_engine or version >= _SERVED_BY_NEXT or accelerator.kind is not AcceleratorKind.CUDA:
        return rules
    reads_bytes = {_HOPPER} | ({(10, 0)} if version >= _BLACKWELL_BYTES else set())
    narrow = flags.kv_cache_dtype not in {None, "auto"}
    if accelerator.supports(_AMPERE) and not (narrow and accelerator.compute_capability not in reads_bytes):
        return rules
    return replace(
        rules,
        is_v0=True,
        counts_context=False,
        flash_2_graph_buffers=False,
        assumptions=(*rules.assumptions, f"vLLM {rules.asked or rules.version} serves this by its V0 engine"),
    )


def chunks_prefill(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, length: int) -> bool:
    """Whether a prompt may be spread over steps: by default for long contexts of plain text models on CUDA."""
    if flags.enable_chunked_prefill is not None:
        return flags.enable_chunked_prefill
    slides = any(layer.kind is AttentionKind.SLIDING for layer in model.layers)
    plain = not (slides or _has_towers(model) or flags.speculative_config is not None or flags.pools)
    latent = any(layer.kind is AttentionKind.LATENT for layer in model.layers)
    return length > _LONG_CONTEXT and plain and not latent and accelerator.kind is AcceleratorKind.CUDA


def default_batch(model: ModelFacts, flags: Flags, rules: VersionRules, length: int, *, chunked: bool) -> int:
    """Tokens of one step where none are given: without chunks a whole prompt."""
    batch = rules.chunk_tokens if chunked else max(length, _LEAST_BATCH)
    batch = max(batch, _POOLING_BATCH) if flags.pools else batch
    return max(batch, _MULTIMODAL_BATCH) if _has_towers(model) else batch


def profile_peak(forward: int, logits: int, flags: Flags, rules: VersionRules) -> Bounds:
    """Peak of the profile run over the weights, bytes per device: a prompt as long as the batch, and its sampling.

    Recorded: 2.02 GiB for Qwen 2.5 1.5B over 32,768 tokens, 1.19 and 1.40 for 256 sequences, 0.19 on the rank that does
    not sample.

    Args:
        forward: Bytes of the widest layer over the batch.
        logits: Words of the vocabulary times sequences of one step.
        flags: Whether the number of sequences is a default, which recorded commands leave out most often.
        rules: Whether the allocator's free blocks counted.
    """
    best = max(forward * 19 // 20, int(SORTED_BYTES_PER_LOGIT * logits))
    least = 0.6 if flags.max_num_seqs is not None else 0.35
    peak = Bounds(low=int(best * least), best=best, high=int(best * 1.1) + GIB // 5)
    return peak + _CACHED_BLOCKS if rules.keeps_cached_blocks else peak


def of_v0_engine(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules
) -> tuple[list[str], list[str]]:
    """What is not known where this engine serves or may serve: doubts, and what can only need more."""
    version = rules.asked or rules.version
    if rules.is_v0:
        kinds = {layer.kind for layer in model.layers}
        unread = {
            "a window beside layers without (it may shorten the context)": AttentionKind.SLIDING in kinds
            and len(kinds) > 1,
            "latent attention": AttentionKind.LATENT in kinds,
            "recurrent layers": AttentionKind.RECURRENT in kinds,
            "cross attention": AttentionKind.CROSS in kinds,
            "pipeline stages": flags.pp > 1,
            "speculative decoding": flags.speculative_config is not None,
            "a pooling task": flags.pools,
            accelerator.name: accelerator.kind is not AcceleratorKind.CUDA,
        }
        doubts = [
            f"{each} under the V0 engine of vLLM {version} was not read" for each, applies in unread.items() if applies
        ]
        towers = ["what the V0 engine's profile run takes for images or sound is not modelled"]
        return doubts, towers if _has_towers(model) else []
    if not rules.has_v0_engine:
        return [], []
    reasons = {
        "a device below compute capability 8.0": accelerator.kind is AcceleratorKind.CUDA
        and not accelerator.supports(_AMPERE),
        "speculative decoding": flags.speculative_config is not None,
        "a pooling task": flags.pools,
        "cross attention": any(layer.kind is AttentionKind.CROSS for layer in model.layers),
        "pipeline stages": flags.pp > 1 and _numbers(rules) < (0, 10, 0),
    }
    may = f"may make vLLM {version} fall back to its V0 engine"
    return [f"{reason} {may}" for reason, applies in reasons.items() if applies], []


def _has_towers(model: ModelFacts) -> bool:
    return model.vision is not None or model.audio is not None


def _numbers(rules: VersionRules) -> tuple[int, ...]:
    return rules.numbers
