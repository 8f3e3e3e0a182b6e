"""Blocks that hold recurrent states: one for each sequence, and what aligning them with cached prefixes asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.fit.bounds import Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective
from agent.fit.memory.fit_verdict import Step
from agent.fit.memory.kv_cache import KvLayout
from agent.fit.memory.kv_pool import Pool, caches_prefixes
from agent.fit.model_and_hardware import AttentionKind, ModelFacts
from agent.fit.report import FitReason
from agent.fit.version_rules import VersionRules

_WHOLE_STEPS = frozenset({"FULL", "FULL_DECODE_ONLY"})
"""Modes of graphs that no level of optimisation gives up."""

_ALIGNS_FROM, _ALIGNS_ALL_FROM = (0, 16), (0, 28)
_NEEDS_WHOLE_BLOCK = ((0, 18), (0, 27))
"""So does 0.17.0; builds of 0.17.1 ran with blocks of 2,096 tokens and a batch of 2,048."""


def blocks_for_states(layout: KvLayout, pool: Pool, flags: Flags, rules: VersionRules, run: Effective) -> list[Step]:
    """A block for the state of each sequence, asked for before graphs of whole steps are captured.

    Guessed tokens and lower levels of optimisation may leave only graphs of parts of a step or none, which do without:
    then it fails at one end alone, as where the versions before and after the one asked for differ.

    Source: vllm/config/compilation.py resolve_cudagraph_mode_and_sizes of 0.25.1, 0.27.0, 0.30.0 and 0.33.0; 0.19.0 and
    0.19.1 capture fewer sizes instead, and 0.23.1 printed it already; vLLM pull request 38270; for the levels
    OPTIMIZATION_LEVEL_01 in vllm/config/vllm.py of 0.20.1 to 0.33.0, where other modes of compilation than vLLM's own
    give up graphs that need one; read 2026-11-23.
    """
    recurrent = any(cache.kind is AttentionKind.RECURRENT for cache in layout.caches)
    asked = rules.needs_block_for_state is not False and recurrent and run.captured
    if not asked or flags.cudagraph_mode == "PIECEWISE":
        return []
    need = Bounds.exactly(run.max_num_seqs * layout.bytes_per_block)
    margin = pool.kv_bytes - need
    low_level = flags.compilation_level in {1, 2} and flags.cudagraph_mode not in _WHOLE_STEPS
    if rules.needs_block_for_state is None or low_level or flags.speculative_config is not None:
        margin = replace(margin, best=max(0, margin.best), high=max(0, margin.high))
    told = f"each of max_num_seqs {run.max_num_seqs} needs a block of the KV cache for its recurrent state"
    return [Step(reason=FitReason.GRAPH_CAPTURE, need=need, margin=margin, told=told)]


def refused_alignment(
    model: ModelFacts, layout: KvLayout, flags: Flags, rules: VersionRules, run: Effective
) -> Iterator[str]:
    """What vLLM asserts where cached prefixes are aligned with recurrent states.

    Gated delta nets always are, Mamba 2 where it is asked for, and from 0.28 all.

    Source: MambaModelConfig in vllm/model_executor/models/config.py of 0.16.0 to 0.33.0 and validate_block_size in
    vllm/config/vllm.py (0.16.0 and 0.17.0: __post_init__) of the same, read 2026-11-26.
    """
    if rules.numbers < _ALIGNS_FROM or not caches_prefixes(flags, rules) or not _aligns(model, flags, rules):
        return
    if not run.chunked:
        yield "chunked prefill is required where the prefixes of recurrent layers are cached"
    if flags.disable_chunked_mm_input:
        yield "--disable-chunked-mm-input is refused where the prefixes of recurrent layers are cached"
    first, after = _NEEDS_WHOLE_BLOCK
    whole = first <= rules.numbers < after or rules.numbers == (0, 17, 0)
    if whole and layout.min_block_tokens > run.max_num_batched_tokens:
        yield (
            f"blocks of {layout.min_block_tokens:,} tokens are larger than max_num_batched_tokens "
            f"{run.max_num_batched_tokens:,}, which aligned recurrent states refuse"
        )


def _aligns(model: ModelFacts, flags: Flags, rules: VersionRules) -> bool:
    states = [layer.recurrent for layer in model.layers if layer.recurrent is not None]
    if rules.numbers >= _ALIGNS_ALL_FROM or flags.untyped("mamba-cache-mode") == "align":
        return bool(states)
    return any(state.ssm_elements and not state.is_mamba2 for state in states)
