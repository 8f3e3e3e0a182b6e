"""A KV pool of known bytes: blocks, tokens, concurrency, and whether one request finds room in it."""

from __future__ import annotations

from dataclasses import dataclass

from agent.fit.bounds import NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective
from agent.fit.memory.kv_cache import KvLayout
from agent.fit.needs import Needs
from agent.fit.version_rules import VersionRules

_ALIGNED_FROM = (0, 30)
_CHECKS_GIVEN_BLOCKS_FROM = (0, 21)


_CHECK_PADS = 1.15
"""How much more than a request's own blocks the check before the start asks of DeepSeek V4, because it pads each group;
assumed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """The figures of one pool, as the version prints them.

    Attributes:
        kv_bytes: What the blocks take; without given ones "Available KV cache memory", never under 0.
        blocks: Blocks in it.
        per_request: Blocks of one request of full length.
        bytes_per_request: The same in bytes.
        demand_bytes: What must find room: one request of full length, or the user's needs if they are more.
        usable: Bytes the one-request check counts with: until 0.20 the profiled ones, even where blocks are given.
        tokens: Printed "KV cache size".
        capacity: Distinct tokens that can be held.
        concurrency: Requests of full length, (low, best, high).
        longest: Longest context one request may have, at the best estimate.
        length: Context used (shortened when automatic).
    """

    kv_bytes: Bounds
    blocks: Bounds
    per_request: int
    bytes_per_request: int
    demand_bytes: int
    usable: Bounds
    tokens: Bounds
    capacity: Bounds
    concurrency: tuple[float, float, float]
    longest: int
    length: int


def fill_pool(
    layout: KvLayout, kv_bytes: Bounds, flags: Flags, rules: VersionRules, *, run: Effective, needs: Needs
) -> Pool:
    """Cut a pool into blocks and ask what it holds.

    Args:
        layout: How a block is laid out.
        kv_bytes: Bytes for the cache; below 0 counts as 0.
        flags: For the override of blocks, speculative tokens and scheduling.
        rules: For the printed size and the held-back block.
        run: Context and batch.
        needs: Context and users the server must hold.

    Source: get_kv_cache_config_from_groups, get_max_concurrency_for_kv_cache_config and
    _check_enough_kv_cache_memory in vllm/v1/core/kv_cache_utils.py, version 0.32.0, read 2026-11-21;
    get_kv_cache_configs of 0.20.0, 0.21.0, 0.22.0 and 0.30.0, read 2026-11-26.
    """
    if not layout.caches:
        return _nothing_cached(run)
    layout = layout.with_encoder(run.max_num_batched_tokens)
    one = layout.bytes_per_block
    given = flags.num_gpu_blocks_override
    held = Bounds.exactly(given * one) if given else kv_bytes.at_least(0)
    blocks = Bounds(low=held.low // one, best=held.best // one, high=held.high // one)
    checked = kv_bytes.at_least(0) if given and rules.numbers < _CHECKS_GIVEN_BLOCKS_FROM else held
    reserved = one if rules.reserves_null_block else 0
    flight = run.batches_in_flight * run.max_num_batched_tokens
    claims = layout.claims(flight, spare_states(flags, rules), keeps_states=_keeps_states(layout, flags, rules))
    starts, served = (
        claims.longest(max(0, pool.best - reserved) // one, run.max_model_len) for pool in (checked, held)
    )
    length = max(1, starts) if run.auto_length else run.max_model_len
    need = claims.blocks(length)
    wanted = claims.blocks(needs.context_tokens or length) * needs.users

    def tokens(count: int) -> int:
        if rules.tokens_from_concurrency:
            return int(count / need * length)
        return count // layout.groups * layout.min_block_tokens

    def capacity(count: int) -> int:
        whole, rest = divmod(count, need)
        return whole * length + claims.longest(rest, length)

    return Pool(
        kv_bytes=held,
        blocks=blocks,
        per_request=need,
        bytes_per_request=need * one,
        demand_bytes=int(max(need, wanted) * one * (_CHECK_PADS if layout.unit > 1 else 1)),
        usable=checked - Bounds.exactly(reserved),
        tokens=Bounds(low=tokens(blocks.low), best=tokens(blocks.best), high=tokens(blocks.high)),
        capacity=Bounds(low=capacity(blocks.low), best=capacity(blocks.best), high=capacity(blocks.high)),
        concurrency=(blocks.low / need, blocks.best / need, blocks.high / need),
        longest=min(starts, served),
        length=length,
    )


def _nothing_cached(run: Effective) -> Pool:
    """An encoder's: no block is cut, and a step takes as many requests as there may be sequences.

    Source: get_kv_cache_config_from_groups and check_enough_kv_cache_memory (nothing is checked without a cache) in
    vllm/v1/core/kv_cache_utils.py of 0.19.0, read 2026-11-27.
    """
    return Pool(
        kv_bytes=NOTHING,
        blocks=NOTHING,
        per_request=0,
        bytes_per_request=0,
        demand_bytes=0,
        usable=NOTHING,
        tokens=NOTHING,
        capacity=NOTHING,
        concurrency=(run.max_num_seqs, run.max_num_seqs, run.max_num_seqs),
        longest=run.max_model_len,
        length=run.max_model_len,
    )


def spare_states(flags: Flags, rules: VersionRules) -> int:
    """Further state blocks of recurrent layers: one to align prefixes when they are cached, one per guessed token.

    Source: vllm/v1/kv_cache_interface.py MambaSpec.max_memory_usage_bytes, version 0.32.0, read 2026-11-21.
    """
    guessed = flags.speculative_config.tokens if flags.speculative_config else 0
    return int(caches_prefixes(flags, rules) and rules.aligns_recurrent_prefixes) + guessed


def _keeps_states(layout: KvLayout, flags: Flags, rules: VersionRules) -> bool:
    """Mamba 2 with prefix caching, until 0.30.0 printed that 3,798 blocks hold 237.4 requests of 16 (32,768 tokens)."""
    asked = rules.keeps_mamba2_states and rules.numbers < _ALIGNED_FROM
    return layout.is_mamba2 and asked and caches_prefixes(flags, rules)


def caches_prefixes(flags: Flags, rules: VersionRules) -> bool:
    """Whether prefixes of recurrent layers are cached, by flag or by the version's default."""
    return rules.caches_recurrent_prefixes if flags.enable_prefix_caching is None else flags.enable_prefix_caching
