"""The memory rules of TPU workers: one number over all chips, no activation profile, every layer keeps all tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from agent.fit.bounds import GIB, NOTHING, Bounds, independent_sum
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective, assumptions_of
from agent.fit.memory.fit_verdict import Step, decide
from agent.fit.memory.kv_cache import cache_bytes_per_element, own_mtp
from agent.fit.memory.support import Verdict
from agent.fit.memory.weights import device_tensors, plan_weights
from agent.fit.model_and_hardware import AcceleratorFacts, ModelFacts, TensorGroup
from agent.fit.needs import Needs
from agent.fit.report import FitReason, FitReport, Overheads
from agent.fit.version_rules import VersionRules

_SOURCE = (
    "tpu-inference 0.23.0 and 0.32.0: worker/tpu_worker.py determine_available_memory, runner/kv_cache_manager.py "
    "get_kv_cache_spec; block sizes and program memory from recorded start-ups on v5e and v6e"
)
_PROGRAMS = Bounds(low=int(0.8 * GIB), best=GIB, high=int(1.26 * GIB))
"""XLA programs outside the budget: a v5e chip with 0.79 GiB left over failed, one with 1.26 GiB started."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChipPool:
    """The KV pool of one chip."""

    block_tokens: int
    bytes_per_block: int
    bytes: Bounds

    @property
    def blocks(self) -> Bounds:
        """Blocks; every layer keeps every token, so a block holds ``block_tokens`` of a request."""
        held, one = self.bytes.at_least(0), max(1, self.bytes_per_block)
        return Bounds(low=held.low // one, best=held.best // one, high=held.high // one)


def predict_on_tpu(
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
    """One prediction for a chip; see ``predict``."""
    total = accelerator.device_bytes
    both = (model,) if draft is None else (model, draft)
    used = independent_sum(_used(each, flags, rules, run) for each in both)
    low, best, high = (int(part * run.utilisation) for part in (total.low, total.best, total.high))
    budget = Bounds(low=low, best=best, high=high)
    pool = ChipPool(
        block_tokens=flags.block_size or block_tokens(run.max_model_len),
        bytes_per_block=sum(_bytes_per_block(each, flags, run) for each in both),
        bytes=Bounds.exactly(flags.kv_cache_memory_bytes) if flags.kv_cache_memory_bytes else budget - used,
    )
    wanted = -(-(needs.context_tokens or run.max_model_len) // pool.block_tokens) * needs.users
    need = -(-run.max_model_len // pool.block_tokens)
    outcome = decide(_steps(total, budget, used, pool, max(need, wanted)), verdict)
    return FitReport(
        fits=outcome.fits,
        reason=outcome.reason,
        weights_bytes=used,
        overheads=Overheads(load_transient=NOTHING, cuda_graphs=NOTHING, non_torch=_PROGRAMS),
        budget_bytes=budget,
        total_bytes=total,
        required_bytes=outcome.required,
        shortfall_bytes=outcome.shortfall,
        assumptions=assumptions_of(model, rules, run, flags, (*outcome.notes, *verdict.notes), device=accelerator),
        sources=(*model.sources, accelerator.cited, _SOURCE),
        max_model_len=run.max_model_len,
        max_num_batched_tokens=run.max_num_batched_tokens,
        max_num_seqs=run.max_num_seqs,
        **_printed(pool, need, run),
    )


class _Printed(TypedDict):
    kv_cache_bytes: Bounds
    kv_bytes_per_request: Bounds
    num_gpu_blocks: Bounds
    kv_block_tokens: int
    kv_blocks_per_request: int
    kv_tokens: Bounds
    kv_capacity_tokens: Bounds
    max_concurrency: tuple[float, float, float]
    estimated_max_model_len: int


def _printed(pool: ChipPool, need: int, run: Effective) -> _Printed:
    """The pool's part of the report; every layer keeps every token, so tokens are blocks x block."""
    blocks, each = pool.blocks, pool.block_tokens
    tokens = Bounds(low=blocks.low * each, best=blocks.best * each, high=blocks.high * each)
    return _Printed(
        kv_cache_bytes=pool.bytes.at_least(0),
        kv_bytes_per_request=Bounds.exactly(need * pool.bytes_per_block),
        num_gpu_blocks=blocks,
        kv_block_tokens=each,
        kv_blocks_per_request=need,
        kv_tokens=tokens,
        kv_capacity_tokens=tokens,
        max_concurrency=(blocks.low / need, blocks.best / need, blocks.high / need),
        estimated_max_model_len=min(run.max_model_len, tokens.best),
    )


def block_tokens(max_model_len: int) -> int:
    """Tokens of one block: the next power of two of the length over 512, 16 to 256 (64 at 32,768, 32 at 16,384)."""
    return min(256, max(16, (1 << (max_model_len - 1).bit_length()) // 512))


def _bytes_per_block(model: ModelFacts, flags: Flags, run: Effective) -> int:
    """Pages of all layers that own KV: heads padded up to the ranks, head size to 128, K and V packed to 32 bits."""
    width = cache_bytes_per_element(flags.kv_cache_dtype, model.quant.base_bytes_per_param)
    packing = max(1, 4 // width)
    total = 0
    guessing = own_mtp(model, flags)
    for layer in (*model.layers, *((guessing,) if guessing is not None else ())):
        if not layer.owns_kv:
            continue
        rows = 2 * -(-layer.kv_heads // flags.tp)
        head = -(-layer.head_dim // 128) * 128
        total += layer.count * (-(-rows // packing) * packing) * head * width
    return total * (flags.block_size or block_tokens(run.max_model_len))


def _used(model: ModelFacts, flags: Flags, rules: VersionRules, run: Effective) -> Bounds:
    """HBM in use on a chip before the pool: text model, its share of the vision tower (the sound tower is not built).

    Recorded: 8.97 GiB on one chip (8.97 here) and 9.30 GiB in sum on four (9.39 here) for Gemma 4 E2B.
    """
    loaded = plan_weights(model, flags, rules, batched_tokens=run.max_num_batched_tokens).loaded
    tensors, tp = list(device_tensors(model, flags)), flags.tp
    skipped = sum(int(tensor.params * 2) for tensor in tensors if tensor.group is TensorGroup.AUDIO)
    unbuffered = model.rope_cache_bytes + run.max_num_batched_tokens * model.layer_count * model.per_layer_hidden * 2
    if model.served_bytes is not None:  # printed for one device and already divided, with all that is not there
        best = loaded.best - (skipped + unbuffered) // tp
    else:
        towers = [tensor for tensor in tensors if tensor.group is TensorGroup.VISION]
        beyond = sum(max(0, 2 * (tensor.params * tp - tensor.stored_params) // tp) for tensor in towers)
        best = loaded.best - skipped - unbuffered - beyond
    return Bounds(low=int(best * 0.985), best=best, high=int(best * 1.03))


def _steps(total: Bounds, budget: Bounds, used: Bounds, pool: ChipPool, need_blocks: int) -> list[Step]:
    demand = Bounds.exactly(need_blocks * pool.bytes_per_block)
    left = Bounds(low=total.low - budget.low, best=total.best - budget.best, high=total.high - budget.high)
    return [
        Step(reason=FitReason.LOAD_PEAK, need=used, margin=total - used),
        Step(reason=FitReason.NO_KV, need=used + Bounds.exactly(1), margin=budget - used - Bounds.exactly(1)),
        Step(reason=FitReason.ONE_REQUEST, need=demand, margin=pool.bytes.at_least(0) - demand),
        Step(reason=FitReason.GRAPH_CAPTURE, need=budget + _PROGRAMS, margin=left - _PROGRAMS),
    ]
