"""The memory rules of vLLM's GPU worker, CUDA and ROCm: budget, load peak, profile run, KV pool, graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil
from operator import attrgetter
from typing import Any

from agent.fit.bounds import GIB, NOTHING, Bounds, independent_sum
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective, assumptions_of
from agent.fit.memory.compressed import compresses, plan_compressed
from agent.fit.memory.connector import staged_bytes
from agent.fit.memory.fit_verdict import Step, decide
from agent.fit.memory.held_by_kernels import (
    as_kernels_hold_it,
    flashinfer_before_hopper,
    graphs_of_narrow_experts,
)
from agent.fit.memory.held_by_loading import loaders_copy, sleep_surplus
from agent.fit.memory.kv_cache import (
    KvLayout,
    cache_bytes_per_element,
    default_block_tokens,
    plan_layout,
    stage_layers,
)
from agent.fit.memory.kv_pool import Pool, fill_pool
from agent.fit.memory.lora import adapter_bytes, with_adapters
from agent.fit.memory.overheads import (
    SOURCE,
    activation_peak,
    assistant_weights,
    delta_kernel_memory,
    descriptor_memory,
    draft_allowance,
    graph_estimate,
    graph_memory,
    is_assisted,
    non_torch,
    replicas,
    sampler_most,
)
from agent.fit.memory.second_runner import beyond_profile, compiled_libraries, estimates_graphs, second_runner
from agent.fit.memory.state_blocks import blocks_for_states, refused_alignment
from agent.fit.memory.support import Verdict
from agent.fit.memory.turboquant import workspace
from agent.fit.memory.weights import WeightPlan, plan_weights
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, ModelFacts
from agent.fit.needs import Needs
from agent.fit.report import FitReason, FitReport, Overheads
from agent.fit.version_rules import VersionRules

_PAGING = (
    "tensor_parallel_size", "pipeline_parallel_size", "kv_cache_dtype", "mamba_ssm_cache_dtype", "block_size",
    "disable_hybrid_kv_cache_manager", "disable_sliding_window", "speculative_config",
)  # fmt: skip
"""The flags that lay the cache out: a search over all others finds it remembered."""

_paging = attrgetter(*_PAGING)
_REMEMBERED = 64
"""Layouts kept in memory, each of one checkpoint with one set of flags that lay its cache out."""

_LAYERWISE_FROM, _AT_ONCE = (0, 18), 4
"""From when weights are quantised module by module, and layers that may be in 16 bits meanwhile: files split some."""

ESTIMATE_ERROR_BYTES, _ESTIMATE_ERROR = GIB // 10, 0.25
"""How far the captured graphs may exceed the estimate that was subtracted for them, and by which share of it: 2.0 GiB
were printed beside an estimate of 1.59, and 1.73 beside 1.58 (0.25 and later)."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Every term of one device.

    ``applied`` is the graph estimate the budget gives up, ``draft`` an allowance, ``kept`` what is held from the
    profile run on and not counted, ``warm_up`` what the sampler takes beyond its profile run, with ``warms_up_first``
    before graphs are captured, ``freed`` the bytes of the profiled peak that nothing takes again, ``counts_context``
    whether the budget pays for what is in use before vLLM starts.
    """

    total: Bounds
    context: Bounds
    weights: Bounds
    transient: Bounds
    activations: Bounds
    non_torch: Bounds
    graphs: Bounds
    draft: Bounds
    applied: Bounds
    budget: Bounds
    given_pool: int | None
    kept: Bounds
    warm_up: Bounds
    warms_up_first: bool
    freed: int
    counts_context: bool

    @property
    def charged(self) -> Bounds:
        """The context, where the budget pays for it."""
        return self.context if self.counts_context else NOTHING

    @property
    def working(self) -> Bounds:
        """Weights, activations and libraries at the peak of the profile run."""
        return independent_sum((self.weights, self.activations, self.non_torch, self.charged))

    @cached_property
    def pool(self) -> Bounds:
        """Bytes for the KV cache; may be negative."""
        if self.given_pool is not None:
            return Bounds.exactly(self.given_pool)
        spent = (self.weights, self.activations, self.non_torch, self.draft, self.applied, self.charged)
        return independent_sum((self.budget, *(term.negated() for term in spent)))


def predict_on_cuda(
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
    """One prediction for a CUDA or ROCm device; see ``predict``.

    Source: vllm/v1/worker/gpu_worker.py determine_available_memory and v1/worker/utils.py request_memory.
    """
    terms = _terms(model, accelerator, flags, rules, run=run, draft=draft)
    layout = _layout(model, _paging(flags), rules, draft)
    pool = fill_pool(layout, terms.pool, flags, rules, run=run, needs=needs)
    profiled = _blocks_of_graph_profile(model, accelerator, flags, rules, run) * layout.bytes_per_block
    steps = _steps(terms, pool, flags, auto=run.auto_length, graph_profile=profiled, caches=bool(layout.caches))
    refused = (*verdict.flag_refusals, *refused_alignment(model, layout, flags, rules, run))
    steps += blocks_for_states(layout, pool, flags, rules, run)
    outcome = decide(steps, replace(verdict, flag_refusals=refused))
    return FitReport(
        fits=outcome.fits,
        reason=outcome.reason,
        weights_bytes=terms.weights,
        kv_cache_bytes=pool.kv_bytes,
        kv_bytes_per_request=Bounds.exactly(pool.bytes_per_request),
        num_gpu_blocks=pool.blocks,
        kv_block_tokens=layout.min_block_tokens,
        kv_blocks_per_request=pool.per_request,
        kv_tokens=pool.tokens,
        kv_capacity_tokens=pool.capacity,
        max_concurrency=pool.concurrency,
        overheads=Overheads(
            load_transient=terms.transient,
            activations=terms.activations,
            non_torch=terms.non_torch,
            cuda_graphs=terms.graphs,
        ),
        budget_bytes=terms.budget,
        total_bytes=terms.total,
        required_bytes=outcome.required,
        shortfall_bytes=outcome.shortfall,
        assumptions=assumptions_of(model, rules, run, flags, (*outcome.notes, *verdict.notes), device=accelerator),
        sources=(*model.sources, accelerator.cited, rules.source, SOURCE),
        max_model_len=pool.length,
        max_num_batched_tokens=run.max_num_batched_tokens,
        max_num_seqs=run.max_num_seqs,
        estimated_max_model_len=pool.longest,
    )


@lru_cache(maxsize=_REMEMBERED)
def _layout(model: ModelFacts, paging: tuple[Any, ...], rules: VersionRules, draft: ModelFacts | None) -> KvLayout:
    flags = Flags(**dict(zip(_PAGING, paging, strict=True)))
    width = cache_bytes_per_element(flags.kv_cache_dtype, model.quant.base_bytes_per_param)
    block = flags.block_size or default_block_tokens(model)
    if compresses(model.layers):
        return plan_compressed(stage_layers(model.layers, flags.pp), rules)
    return plan_layout(model, flags, block_tokens=block, bytes_per_element=width, rules=rules, draft=draft)


def _terms(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    rules: VersionRules,
    *,
    run: Effective,
    draft: ModelFacts | None,
) -> Terms:
    total = accelerator.device_bytes
    held = as_kernels_hold_it(model, accelerator, flags, rules)
    plan = plan_weights(held, flags, rules, batched_tokens=run.max_num_batched_tokens)
    weights = plan.loaded
    if draft is None and is_assisted(model, flags):
        weights = independent_sum((weights, assistant_weights(model, flags)))
    if draft is not None:
        weights = weights + plan_weights(draft, flags, rules, batched_tokens=run.max_num_batched_tokens).loaded
    weights = independent_sum((weights, accelerator.load_bytes, adapter_bytes(model, flags)))
    sampling = second_runner(model, accelerator, flags, rules, run)
    activations = activation_peak(model, flags, run, rules, sampled=sampling.profiled if sampling else None)
    beyond = beyond_profile(sampling, activations)
    graphs = graph_memory(model, flags, run, rules, flash_2=_keeps_flash_2_buffers(model, accelerator, rules))
    graphs = graphs + graphs_of_narrow_experts(model, accelerator, flags, rules, run)
    low, best, high = (ceil(part * run.utilisation) for part in (total.low, total.best, total.high))
    return Terms(
        total=total,
        context=_context(model, accelerator, flags, rules),
        weights=weights,
        transient=_transient(model, held, plan, flags, rules),
        activations=activations,
        non_torch=_libraries(model, accelerator, flags, rules, weights) + beyond.counted,
        graphs=with_adapters(graphs, flags),
        draft=draft_allowance(model, flags, known=draft is not None, length=run.max_model_len)
        + sleep_surplus(model, flags, plan),
        applied=_applied(model, accelerator, flags, rules, run),
        budget=Bounds(low=low, best=best, high=high),
        given_pool=flags.kv_cache_memory_bytes,
        kept=beyond.kept + _workspace(model, flags, run),
        warm_up=beyond.warm_up,
        warms_up_first=beyond.warms_up_first,
        freed=max(0, activations.low - sampler_most(model, run)),
        counts_context=rules.counts_context,
    )


def _workspace(model: ModelFacts, flags: Flags, run: Effective) -> Bounds:
    return workspace(
        model, flags, sequences=run.max_num_seqs, batch=run.max_num_batched_tokens, length=run.max_model_len
    )


def _libraries(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, weights: Bounds
) -> Bounds:
    """What libraries, kernels, loaders and connectors hold beside weights and activations."""
    kernels = descriptor_memory(model, accelerator, rules) + delta_kernel_memory(model, accelerator)
    kernels = kernels + flashinfer_before_hopper(model, accelerator, flags)
    kernels = kernels + compiled_libraries(model, accelerator, flags, rules)
    kernels = kernels + loaders_copy(model, accelerator, flags, weights)
    return non_torch(accelerator, flags, rules, shares=_shares_experts(model, flags)) + kernels + staged_bytes(flags)


def _transient(model: ModelFacts, held: ModelFacts, plan: WeightPlan, flags: Flags, rules: VersionRules) -> Bounds:
    """What loading takes and gives back. Quantising while loading may hold everything in 16 bits first.

    To 8 bits it goes module by module as their last tensor is read: 67.7 GiB of Llama 3.1 70B were loaded on a card of
    95 (0.23.0). Source: vllm/model_executor/layers/quantization/fp8.py (Fp8OnlineLinearMethod) of 0.18.0 to 0.33.0 and
    docs/training/layerwise.md, read 2026-11-26; whether older versions do was not read.
    """
    if held.quant.scheme == model.quant.scheme:
        return Bounds.exactly(plan.transient_bytes)
    whole = plan_weights(model, flags, rules, batched_tokens=0)
    high = max(0, whole.loaded.high - plan.loaded.low)
    if held.quant.scheme == "fp8" and rules.numbers >= _LAYERWISE_FROM:
        high = min(high, whole.loaded.high * _AT_ONCE // max(_AT_ONCE, sum(layer.count for layer in model.layers)))
    return Bounds(low=plan.transient_bytes, best=plan.transient_bytes, high=high + plan.transient_bytes)


def _context(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> Bounds:
    """Before 0.8 the budget paid for what grew since the device was set up, which the context may precede.

    Replicas that share experts set up groups of their own, outside the budget: 2.3 GiB were in use beside it on L4s
    where each of four replicas holds a part (0.29.0).
    """
    shares = _shares_experts(model, flags)
    peers = accelerator.peer_context_bytes if shares or flags.world > 1 else NOTHING
    groups = Bounds(low=0, best=0, high=3 * GIB // 2) if shares else NOTHING
    context = accelerator.context_bytes + peers + groups
    return replace(context, low=0) if rules.is_unread else context


def _shares_experts(model: ModelFacts, flags: Flags) -> bool:
    return replicas(model, flags) > 1


def _blocks_of_graph_profile(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, run: Effective
) -> int:
    """Blocks of the KV cache over which graphs are profiled, before the real one is sized.

    Few bytes for plain attention (16 tokens a block), but 10.3 GiB for Qwen 3.5 35B-A3B, whose recurrent layers make
    blocks of 1,056 tokens: 0.18.0 printed "num_gpu_blocks_override=512" and ran out of memory on 44 GiB.

    Source: v1/worker/gpu_model_runner.py _init_minimal_kv_cache_for_profiling of 0.18.0, 0.19.0, 0.21.0 to 0.27.0,
    0.29.0 and 0.33.0, and gpu_worker.py determine_available_memory (ROCm from 0.26 on), read 2026-11-23.
    """
    on_rocm = accelerator.kind is AcceleratorKind.ROCM and not rules.profiles_graphs_by_sequence
    if not rules.profiles_graphs or on_rocm or estimates_graphs(model, flags, rules) is False:
        return 0
    if rules.profiles_graphs_by_sequence:
        return min(run.largest_captured, run.max_num_seqs)
    return run.largest_captured


def _applied(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, run: Effective
) -> Bounds:
    """On ROCm 0.18 to 0.20 estimate nothing, later versions do: vllm/v1/worker/gpu_worker.py, read 2026-11-22."""
    estimates = estimates_graphs(model, flags, rules)
    if not rules.graph_estimate_subtracted or estimates is False:
        return NOTHING
    estimate = with_adapters(graph_estimate(model, flags, run), flags)
    return estimate if estimates and accelerator.kind is AcceleratorKind.CUDA else replace(estimate, low=0)


def _keeps_flash_2_buffers(model: ModelFacts, accelerator: AcceleratorFacts, rules: VersionRules) -> bool:
    """Ampere and Ada take FlashAttention 2, Hopper 3; Gemma 4 takes Triton."""
    major = (accelerator.compute_capability or (0, 0))[0]
    return major == 8 and model.family != "gemma-4" and rules.flash_2_graph_buffers


def _steps(terms: Terms, pool: Pool, flags: Flags, *, auto: bool, graph_profile: int, caches: bool) -> list[Step]:
    """The steps of start-up in their order."""
    t, blocks_given = terms, flags.num_gpu_blocks_override is not None
    loading = independent_sum((t.weights, t.transient, t.context))
    profiling = independent_sum((t.weights, t.activations, t.non_torch, t.context))
    asking = Step(reason=FitReason.FREE_MEMORY, need=t.budget, margin=_unasked(t) - t.context)
    steps = [
        *(() if t.counts_context else (asking,)),
        Step(reason=FitReason.LOAD_PEAK, need=loading, margin=t.total.less(loading)),
        Step(reason=FitReason.PROFILE, need=profiling, margin=t.total.less(profiling)),
    ]
    if not caches:
        return [*steps, _capture(t, None)]
    if t.given_pool is None:
        if graph_profile:
            steps.append(_profile_graphs(t, graph_profile))
        need = independent_sum((t.working, t.applied, Bounds.exactly(1)))
        steps.append(Step(reason=FitReason.NO_KV, need=need, margin=t.pool - Bounds.exactly(1)))
    if not auto or not pool.longest or pool.demand_bytes > pool.bytes_per_request:
        demand = Bounds.exactly(pool.demand_bytes)
        steps.append(Step(reason=FitReason.ONE_REQUEST, need=demand, margin=pool.usable - demand))
    return [*steps, *_given_blocks(pool), _capture(t, pool.kv_bytes.best if blocks_given else t.given_pool)]


def _given_blocks(pool: Pool) -> list[Step]:
    """Given blocks that were not asked for a whole request may hold less: it starts, and never schedules one."""
    if pool.kv_bytes.best >= pool.demand_bytes or pool.usable.best < pool.demand_bytes:
        return []
    demand = Bounds.exactly(pool.demand_bytes)
    wanted, missing = pool.demand_bytes > pool.bytes_per_request, pool.kv_bytes.best - pool.demand_bytes
    margin = Bounds(low=missing, best=missing if wanted else 0, high=missing if wanted else 0)
    told = f"the given blocks hold {pool.tokens.best:,} tokens: it starts, and a longer request is never scheduled"
    return [Step(reason=FitReason.ONE_REQUEST, need=demand, margin=margin, told=told)]


def _unasked(t: Terms) -> Bounds:
    """Memory of the device that the budget leaves alone."""
    return Bounds(low=t.total.low - t.budget.low, best=t.total.best - t.budget.best, high=t.total.high - t.budget.high)


def _profile_graphs(t: Terms, blocks_bytes: int) -> Step:
    """Device memory while two graphs of every kind are captured over a KV cache of their own; activations are free."""
    graphs = Bounds(low=0, best=t.graphs.best // 4, high=t.graphs.high)
    need = independent_sum((t.weights, t.non_torch, t.context, t.draft, graphs, Bounds.exactly(blocks_bytes)))
    return Step(reason=FitReason.GRAPH_CAPTURE, need=need, margin=t.total.less(need))


def _capture(t: Terms, given_pool: int | None) -> Step:
    """Device memory once pool and graphs are there and the sampler is warmed up.

    A profiled pool makes that the budget, less the estimate given up for graphs, plus the graphs: the terms that make
    up the pool cancel out. Of the profiled peak only sampling comes again, at the optimistic end nothing; at the
    pessimistic end all of it, as the first prompt of a whole batch takes it.
    """
    if given_pool is not None:
        again = Bounds(low=0, best=t.activations.best, high=t.activations.high)
        pool = Bounds.exactly(given_pool)
        spent = (t.weights, t.non_torch, t.graphs, again, t.kept, t.warm_up, t.context, pool)
        need = independent_sum(spent)
        return Step(reason=FitReason.GRAPH_CAPTURE, need=need, margin=t.total.less(need))
    excess = t.graphs
    if t.applied.high:
        best, excess_high = t.graphs.best - t.applied.best, ESTIMATE_ERROR_BYTES + int(t.applied.best * _ESTIMATE_ERROR)
        excess = Bounds(low=min(best, t.graphs.low - t.applied.low), best=best, high=excess_high)
    unused = Bounds(low=0, best=t.freed, high=t.activations.low)
    context = NOTHING if t.counts_context else t.context
    beyond = independent_sum((excess, t.draft, context, unused.negated())) + t.kept
    if t.warms_up_first:  # the warm-up gives back what it took before graphs take theirs
        before = independent_sum((t.applied.negated(), t.draft, context, unused.negated())) + t.kept + t.warm_up
        beyond = replace(beyond, high=max(beyond.high, before.high))
    else:
        beyond = beyond + t.warm_up
    best = t.budget.best + beyond.best
    # budget and device go together: a device at its smallest also has the smallest budget
    need = Bounds(low=min(best, t.budget.low + beyond.low), best=best, high=max(best, t.budget.low + beyond.high))
    return Step(reason=FitReason.GRAPH_CAPTURE, need=need, margin=_unasked(t) - beyond)
