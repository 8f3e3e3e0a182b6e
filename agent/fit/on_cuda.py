"""The memory rules of CUDA devices: budget, load peak, profile run, KV pool, graphs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from agent.fit.batch import Effective
from agent.fit.bounds import GIB, Bounds
from agent.fit.facts import AcceleratorFacts, ModelFacts, VersionRules
from agent.fit.flags import Flags
from agent.fit.kv import BLOCK_TOKENS, cache_bytes_per_element, plan_layout
from agent.fit.needs import Needs
from agent.fit.overheads import SOURCE, activation_peak, graph_estimate, graph_memory, non_torch
from agent.fit.pool import Pool, fill_pool
from agent.fit.report import FitReason, FitReport, Overheads
from agent.fit.steps import Step, decide, step
from agent.fit.support import Verdict, assumptions_of
from agent.fit.weights import plan_weights

ESTIMATE_ERROR_BYTES = GIB // 10
"""How far the captured graphs may exceed the estimate that was subtracted for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """Every term of one device, as bounds; ``applied`` is the graph estimate the budget gives up."""

    total: Bounds
    context: Bounds
    weights: Bounds
    transient: int
    activations: Bounds
    non_torch: Bounds
    graphs: Bounds
    applied: Bounds
    budget: Bounds
    given_pool: int | None

    @property
    def pool(self) -> Bounds:
        """Bytes for the KV cache; may be negative."""
        if self.given_pool is not None:
            return Bounds.exactly(self.given_pool)
        return self.budget - self.weights - self.activations - self.non_torch - self.applied


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
    """One prediction for a CUDA device; see ``predict``.

    Source: vllm/v1/worker/gpu_worker.py determine_available_memory and v1/worker/utils.py request_memory.
    """
    terms = _terms(model, accelerator, flags, rules, run, draft)
    width = cache_bytes_per_element(flags.kv_cache_dtype, model.quant.base_bytes_per_param)
    block = flags.block_size or BLOCK_TOKENS
    layout = plan_layout(model, flags, block_tokens=block, bytes_per_element=width, draft=draft)
    pool = fill_pool(layout, terms.pool, flags, rules, run, needs)
    outcome = decide(_steps(terms, pool, auto=run.auto_length), verdict)
    return FitReport(
        fits=outcome.fits,
        reason=outcome.reason,
        weights_bytes=terms.weights,
        kv_cache_bytes=terms.pool.at_least(0),
        kv_bytes_per_request=Bounds.exactly(pool.bytes_per_request),
        num_gpu_blocks=pool.blocks,
        kv_block_tokens=layout.min_block_tokens,
        kv_blocks_per_request=pool.per_request,
        kv_tokens=pool.tokens,
        kv_capacity_tokens=pool.capacity,
        max_concurrency=pool.concurrency,
        overheads=Overheads(
            load_transient=Bounds.exactly(terms.transient),
            activations=terms.activations,
            non_torch=terms.non_torch,
            cuda_graphs=terms.graphs,
        ),
        budget_bytes=terms.budget,
        total_bytes=terms.total,
        required_bytes=outcome.required,
        shortfall_bytes=outcome.shortfall,
        assumptions=assumptions_of(model, rules, run, flags, (*outcome.notes, *verdict.notes)),
        sources=(
            *model.sources,
            f"{accelerator.name}: {accelerator.source} ({accelerator.date})",
            rules.source,
            SOURCE,
        ),
        max_model_len=pool.length,
        max_num_batched_tokens=run.max_num_batched_tokens,
        max_num_seqs=run.max_num_seqs,
        estimated_max_model_len=pool.longest,
    )


def _terms(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    flags: Flags,
    rules: VersionRules,
    run: Effective,
    draft: ModelFacts | None,
) -> Terms:
    assert accelerator.total_bytes is not None
    total = accelerator.total_bytes
    plan = plan_weights(model, flags, rules, batched_tokens=run.max_num_batched_tokens)
    weights = plan.loaded
    if draft is not None:
        weights = weights + plan_weights(draft, flags, rules, batched_tokens=run.max_num_batched_tokens).loaded
    low, best, high = (ceil(part * run.utilisation) for part in (total.low, total.best, total.high))
    return Terms(
        total=total,
        context=accelerator.context_bytes,
        weights=weights,
        transient=plan.transient_bytes,
        activations=activation_peak(model, flags, run),
        non_torch=non_torch(flags),
        graphs=graph_memory(run),
        applied=graph_estimate(run) if rules.graph_estimate_subtracted else Bounds.exactly(0),
        budget=Bounds(low=low, best=best, high=high),
        given_pool=flags.kv_cache_memory_bytes,
    )


def _steps(terms: Terms, pool: Pool, *, auto: bool) -> list[Step]:
    """The six steps of start-up in their order, each at the optimistic end, the best estimate and the pessimistic end."""
    t = terms
    totals = (t.total.high, t.total.best, t.total.low)
    budgets = (t.budget.high, t.budget.best, t.budget.low)
    contexts, weights = _ends(t.context), _ends(t.weights)
    working = _ends(t.weights + t.activations + t.non_torch)
    applied, usable = _ends(t.applied), (pool.usable.high, pool.usable.best, pool.usable.low)
    capture = _capture_needs(t, contexts, budgets)
    steps = [
        step(FitReason.FREE_MEMORY, [(b, a - c) for b, a, c in zip(budgets, totals, contexts, strict=True)]),
        step(
            FitReason.LOAD_PEAK,
            [(w + t.transient + c, a) for w, c, a in zip(weights, contexts, totals, strict=True)],
        ),
        step(FitReason.PROFILE, [(w + c, a) for w, c, a in zip(working, contexts, totals, strict=True)]),
    ]
    if t.given_pool is None:
        steps.append(step(FitReason.NO_KV, [(w + g + 1, b) for w, g, b in zip(working, applied, budgets, strict=True)]))
    if not auto or not pool.longest or pool.demand_bytes > pool.bytes_per_request:
        steps.append(step(FitReason.ONE_REQUEST, [(pool.demand_bytes, have) for have in usable]))
    steps.append(step(FitReason.GRAPH_CAPTURE, list(zip(capture, totals, strict=True))))
    return steps


def _capture_needs(t: Terms, contexts: tuple[int, ...], budgets: tuple[int, ...]) -> tuple[int, ...]:
    """Device memory in use once pool and graphs are there and the sampler is warmed up.

    With a profiled pool that is the budget, less the estimate given up for graphs, plus the graphs: the terms that make
    up the pool cancel out. At the optimistic end the warm-up takes no activations again.
    """
    if t.given_pool is not None:
        spent = _ends(t.weights + t.non_torch + t.graphs)
        again = (0, t.activations.best, t.activations.high)
        return tuple(s + t.given_pool + a + c for s, a, c in zip(spent, again, contexts, strict=True))
    if t.applied.high:
        excess = (min(0, t.graphs.low - t.applied.low), t.graphs.best - t.applied.best, ESTIMATE_ERROR_BYTES)
    else:
        excess = _ends(t.graphs)
    unused = (t.activations.low, 0, 0)
    return tuple(b - u + x + c for b, u, x, c in zip(budgets, unused, excess, contexts, strict=True))


def _ends(bounds: Bounds) -> tuple[int, int, int]:
    return bounds.low, bounds.best, bounds.high
