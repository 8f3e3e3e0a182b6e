"""The memory rules of vLLM's CPU worker: the KV space is given, the host's memory is not ours to know."""

from __future__ import annotations

from dataclasses import replace

from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective, assumptions_of
from agent.fit.memory.fit_verdict import Step, decide
from agent.fit.memory.kv_cache import CPU_BLOCK_TOKENS, cache_bytes_per_element, plan_layout
from agent.fit.memory.kv_pool import fill_pool
from agent.fit.memory.support import Verdict
from agent.fit.memory.weights import plan_weights
from agent.fit.model_and_hardware import AcceleratorFacts, ModelFacts
from agent.fit.needs import Needs
from agent.fit.report import FitReason, FitReport, Overheads
from agent.fit.version_rules import VersionRules

_UNGIVEN = "the host's memory is not known: give VLLM_CPU_KVCACHE_SPACE=GIB or --kv-cache-memory-bytes"
_HOST = "the host is taken to have room for weights and the given KV space"


def predict_on_cpu(
    *,
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    rules: VersionRules,
    run: Effective,
    verdict: Verdict,
    draft: ModelFacts | None,
    needs: Needs,
) -> FitReport:
    """One prediction for the CPU worker; see ``predict``.

    VLLM_CPU_KVCACHE_SPACE silently wins over ``--kv-cache-memory-bytes`` (seen with vLLM 0.32.0, 2026-11-21).
    """
    weights = plan_weights(model, flags, rules, batched_tokens=run.max_num_batched_tokens).loaded
    width = cache_bytes_per_element(flags.kv_cache_dtype, model.quant.base_bytes_per_param)
    block = flags.block_size or CPU_BLOCK_TOKENS
    layout = plan_layout(model, flags, block_tokens=block, bytes_per_element=width, rules=rules, draft=draft)
    space = int(flags.kv_cache_space_gib * GIB) if flags.kv_cache_space_gib else flags.kv_cache_memory_bytes
    pool = fill_pool(layout, Bounds.exactly(space or 0), flags, rules, run=run, needs=needs)
    if not space:
        verdict = replace(verdict, doubts=(*verdict.doubts, _UNGIVEN))
    demand = Bounds.exactly(pool.demand_bytes)
    outcome = decide([Step(reason=FitReason.ONE_REQUEST, need=demand, margin=pool.usable - demand)], verdict)
    known = bool(space)
    return FitReport(
        fits=outcome.fits,
        reason=outcome.reason,
        weights_bytes=weights,
        kv_cache_bytes=pool.kv_bytes if known else None,
        kv_bytes_per_request=Bounds.exactly(pool.bytes_per_request),
        num_gpu_blocks=pool.blocks if known else None,
        kv_block_tokens=layout.min_block_tokens,
        kv_blocks_per_request=pool.per_request,
        kv_tokens=pool.tokens if known else None,
        kv_capacity_tokens=pool.capacity if known else None,
        max_concurrency=pool.concurrency if known else None,
        overheads=Overheads(),
        required_bytes=weights + Bounds.exactly(pool.bytes_per_request),
        shortfall_bytes=outcome.shortfall if known else None,
        assumptions=assumptions_of(
            model, rules, run, flags, (*outcome.notes, *verdict.notes, _HOST), device=accelerator
        ),
        sources=(*model.sources, accelerator.cited, rules.source),
        max_model_len=pool.length,
        max_num_batched_tokens=run.max_num_batched_tokens,
        max_num_seqs=run.max_num_seqs,
        estimated_max_model_len=pool.longest if known else None,
    )
