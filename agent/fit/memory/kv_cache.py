"""KV cache arithmetic: pages, groups, blocks, tokens and concurrency, as vLLM's planner does it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, gcd
from sys import maxsize
from typing import Any

from agent.fit.flags.flags import Flags
from agent.fit.memory.turboquant import PLAIN_ENDS, slot_bytes
from agent.fit.model_and_hardware import AttentionKind, LayerGroup, ModelFacts
from agent.fit.version_rules import VersionRules

BLOCK_TOKENS = 16
CPU_BLOCK_TOKENS = 128
_SPARSE_BLOCK_TOKENS = 64
"""The one block of the indexer's kernels: vllm/v1/attention/backends/mla/indexer.py of 0.21.0, read 2026-11-23."""

_LATENT_STEP, _LATENT_STEP_OF_PAIRS = 64, 128
_LATENT_PAIRS_FROM, _STEPS_AS_GIVEN_FROM = (0, 27), (0, 20)

_INDEXERS_EVERYWHERE = (0, 23, 0)
_SPARSE_FP8_BYTES = 656
"""A token of fp8_ds_mla: 512 bytes, four scales of 4, and 64 rotated elements in 16 bits. Sparse attention takes it for
every fp8 cache: MLAAttentionSpec in vllm/v1/kv_cache_interface.py and DeepseekV32ForCausalLM in
vllm/model_executor/models/config.py of 0.13.0, read 2026-11-23."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerCache:
    """Layers whose caches are alike: what one block of one layer is.

    Attributes:
        kind: Full, sliding, recurrent, latent or cross.
        layers: Layers on this pipeline stage.
        block_tokens: Tokens of one block.
        page_bytes: Bytes of one block of one layer on one device.
        window_tokens: Sliding window or an encoder's tokens, None for all others.
    """

    kind: AttentionKind
    layers: int
    block_tokens: int
    page_bytes: int
    window_tokens: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """Blocks that a request claims.

    Attributes:
        fixed: At any length.
        grows: What grows with it: (block tables, tokens of a block, most tokens kept).
        unit: What one block counts in the two above.
    """

    fixed: int
    grows: tuple[tuple[int, int, int], ...]
    unit: int = 1

    def blocks(self, length: int) -> int:
        """Blocks of a request of ``length`` tokens."""
        need = self.fixed
        for tables, block, kept in self.grows:
            need += tables * -(-min(length, kept) // block)
        return -(-need // self.unit)

    def longest(self, blocks: int, most: int) -> int:
        """Longest context of one request in ``blocks``, at most ``most`` tokens; 0 if not even one token fits."""
        blocks *= self.unit
        step = gcd(*(block for _, block, _ in self.grows)) or 1  # within a step of all kinds the claim stays the same
        grows, low, high = self.grows, 0, -(-most // step)
        whole = [(tables, block) for tables, block, kept in grows if kept >= most]
        if whole:  # they get at most everything, and at least what is left beside all that the others ever keep
            rate, ends = sum([tables / block for tables, block in whole]), sum([tables for tables, _ in whole])
            kept_by_others = sum([tables * -(-kept // block) for tables, block, kept in grows if kept < most])
            room = blocks - self.fixed
            high = min(high, max(0, int(room / rate) // step + 1))
            low = max(0, min(high, int((room - kept_by_others - ends) / rate) // step - 1))
        while low < high:
            middle = (low + high + 1) // 2
            length, need = min(middle * step, most), self.fixed
            for tables, block, kept in grows:
                need += tables * -(-min(length, kept) // block)
            if need <= blocks:
                low = middle
            else:
                high = middle - 1
        return min(low * step, most)


@dataclass(frozen=True, kw_only=True, slots=True)
class KvLayout:
    """How one block id is laid out over the layers of one device.

    Attributes:
        caches: The kinds of cache, page sizes made equal.
        group_layers: Layers that share one block table.
        bytes_per_block: Bytes of one block id on one device.
        padded: Pages were padded because one does not divide the other.
        is_mamba2: Its recurrent layers are Mamba 2.
        unit: What a request's claims count in, where pages of several sizes are added up (DeepSeek V4); 0 elsewhere.
    """

    caches: tuple[LayerCache, ...]
    group_layers: int
    bytes_per_block: int
    padded: bool = False
    is_mamba2: bool = False
    unit: int = 0

    @property
    def min_block_tokens(self) -> int:
        """Tokens of the smallest block, what the old size formula multiplies by."""
        sizes = [cache.block_tokens for cache in self.caches if cache.kind is not AttentionKind.RECURRENT]
        return min(sizes or [cache.block_tokens for cache in self.caches] or [BLOCK_TOKENS])

    @property
    def groups(self) -> int:
        """Block tables of one request."""
        return sum(-(-cache.layers // self.group_layers) for cache in self.caches)

    def with_encoder(self, batch: int) -> KvLayout:
        """The same where an encoder may be given a batch of tokens, which a request claims for cross attention.

        Source: CrossAttentionSpec in vllm/v1/kv_cache_interface.py and max_num_encoder_input_tokens in
        vllm/config/scheduler.py of 0.13.0 and 0.33.0, read 2026-11-26.
        """
        if not any(each.kind is AttentionKind.CROSS for each in self.caches):
            return self
        caches = (
            replace(each, window_tokens=batch) if each.kind is AttentionKind.CROSS else each for each in self.caches
        )
        return replace(self, caches=tuple(caches))

    def claims(self, in_flight_tokens: int, spare_states: int = 0, *, keeps_states: bool = False) -> Claims:
        """What one request claims, whatever its length.

        Args:
            in_flight_tokens: Tokens scheduled and not yet settled; sliding windows keep them.
            spare_states: Further state blocks of recurrent layers (1 with prefix caching, plus speculative ones).
            keeps_states: The state of every block is kept, as prefix caching does for Mamba 2.

        Returns:
            Blocks by kind of layer; cross attention claims the tokens of the encoder however short the request is.

        Source: vllm/v1/kv_cache_interface.py max_admission_blocks_per_request, version 0.32.0, read 2026-11-21.
        """
        fixed, grows = 0, []
        for cache in self.caches:
            tables = -(-cache.layers // self.group_layers) * (cache.page_bytes if self.unit else 1)
            if cache.kind is AttentionKind.RECURRENT:
                fixed += tables * (1 + spare_states)
                grows.extend([(tables, self.min_block_tokens, maxsize)] * keeps_states)
            elif cache.kind is AttentionKind.CROSS:
                fixed += tables * -(-(cache.window_tokens or 0) // cache.block_tokens)
            elif cache.window_tokens is not None:
                fixed += tables
                grows.append((tables, cache.block_tokens, cache.window_tokens - 1 + in_flight_tokens))
            else:
                grows.append((tables, cache.block_tokens, maxsize))
        return Claims(fixed=fixed, grows=tuple(grows), unit=self.unit or 1)


PLAIN_CACHES = frozenset({None, "auto", "bfloat16", "bf16", "float16", "fp16", "half"})
BYTE_CACHES = frozenset({
    "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "fp8_per_token_head", "int8_per_token_head",
})  # fmt: skip


def cache_bytes_per_element(kv_cache_dtype: str | None, base_bytes: int) -> int:
    """Bytes of one cached element; per-head scales of the ``per_token_head`` types are added by the page.

    A type that stands in none of the sets above is counted as one byte; `support` makes the answer unknown.
    """
    if kv_cache_dtype in PLAIN_CACHES:
        return base_bytes
    return 4 if kv_cache_dtype == "float32" else 1


def default_block_tokens(model: ModelFacts) -> int:
    """Tokens of one block on a GPU where ``--block-size`` is not given."""
    return _SPARSE_BLOCK_TOKENS if model.attends_sparsely else BLOCK_TOKENS


def own_mtp(model: ModelFacts, flags: Flags) -> LayerGroup | None:
    """The model's own guessing layer where the flags ask for it; None with an outside draft model."""
    asked = flags.speculative_config
    return model.mtp if asked is not None and "mtp" in asked.method and not asked.model else None


def with_every_indexer(model: ModelFacts, rules: VersionRules) -> ModelFacts:
    """The model with an indexer in every sparse layer, as vLLM built GLM 5.2 at first: 61,464 bytes a token (0.23.0).

    Later only layers that rank tokens have one: 53,940 (0.23.1).

    Source: vllm/model_executor/models/deepseek_v2.py DeepseekV2MLAAttention (index_topk_freq), read 2026-11-26.
    """
    owners = [layer for layer in model.layers if layer.index_bytes]
    if not owners or all(layer.index_bytes != 0 for layer in model.layers):
        return model
    if rules.numbers > _INDEXERS_EVERYWHERE:
        return model
    whole = owners[-1]
    layers = (replace(layer, **_indexer_of(whole)) if layer.index_bytes == 0 else layer for layer in model.layers)
    return replace(model, layers=tuple(layers))


def _indexer_of(layer: LayerGroup) -> dict[str, Any]:
    names = ("index_bytes", "attention_params", "replicated_params")
    return {name: getattr(layer, name) for name in names}


def states_counted(model: ModelFacts, flags: Flags) -> frozenset[str]:
    """Convolution states of 16 bits, beside a recurrent state of a stated type, are what such a model has anyway.

    So are states aligned with prefixes, the mode that cached prefixes mean for all but Mamba 2 (MambaModelConfig in
    vllm/model_executor/models/config.py of 0.18.0 and 0.33.0, read 2026-11-26).
    """
    states = [layer.recurrent for layer in model.layers if layer.recurrent is not None]
    mamba2 = any(state.is_mamba2 for state in states)
    aligned = flags.untyped("mamba-cache-mode") == "align" and flags.enable_prefix_caching and not mamba2
    mode = frozenset({"mamba-cache-mode"}) if states and aligned else frozenset()
    plain = flags.untyped("mamba-cache-dtype") in PLAIN_CACHES and model.quant.base_bytes_per_param == 2
    return mode | {"mamba-cache-dtype"} if plain and flags.mamba_ssm_cache_dtype else mode


def stage_layers(layers: tuple[LayerGroup, ...], pp: int) -> tuple[LayerGroup, ...]:
    """The layers of the fullest pipeline stage, each kind's share rounded up."""
    return layers if pp == 1 else tuple(replace(layer, count=-(-layer.count // pp)) for layer in layers)


def plan_layout(
    model: ModelFacts,
    flags: Flags,
    *,
    block_tokens: int,
    bytes_per_element: int,
    rules: VersionRules,
    draft: ModelFacts | None = None,
) -> KvLayout:
    """Lay out the KV cache of one device.

    Args:
        model: Facts of the model.
        flags: Tensor and pipeline parallelism, hybrid manager, cache type.
        block_tokens: ``--block-size`` or the platform's default.
        bytes_per_element: Width of a cached element.
        rules: How the version groups layers and makes their pages equal.
        draft: Draft model whose layers cache beside the target's.

    Returns:
        Groups of equal page size, none for an encoder, as vLLM's ``unify_kv_cache_spec_page_size`` and
        ``_get_kv_cache_groups_uniform_page_size`` make them.

    Source: vllm/v1/core/kv_cache_utils.py, version 0.32.0, read 2026-11-21.
    """
    guessing = own_mtp(model, flags)
    layers = (
        *stage_layers(model.layers, flags.pp),
        *((guessing,) if guessing is not None else ()),
        *(draft.layers if draft is not None else ()),
    )
    caches = _merged(layers, flags, block_tokens, bytes_per_element)
    if not caches:
        return KvLayout(caches=(), group_layers=1, bytes_per_block=1)
    mixed = {cache.kind for cache in caches} >= {AttentionKind.FULL, AttentionKind.SLIDING}
    if flags.disable_hybrid_kv_cache_manager or rules.is_v0 or (rules.widens_sliding_windows and mixed):
        caches = tuple(replace(cache, kind=AttentionKind.FULL, window_tokens=None) for cache in caches)
    if len({cache.kind for cache in caches}) == 1 and len({cache.window_tokens for cache in caches}) == 1:
        together = sum(cache.layers for cache in caches)
        whole = sum(cache.layers * cache.page_bytes for cache in caches)
        one = replace(caches[0], layers=together)
        return KvLayout(caches=(one,), group_layers=together, bytes_per_block=whole)
    caches, padded = _unified(_mamba_aligned(caches, rules), pads=rules.pads_unequal_pages)
    counts = [cache.layers for cache in caches]
    group = max(counts) if max(counts) < min(counts) * rules.group_padding_limit else min(counts)
    return KvLayout(
        caches=caches,
        group_layers=group,
        bytes_per_block=group * caches[0].page_bytes,
        padded=padded,
        is_mamba2=any(layer.recurrent is not None and layer.recurrent.is_mamba2 for layer in layers),
    )


def _merged(layers: tuple[LayerGroup, ...], flags: Flags, block: int, width: int) -> tuple[LayerCache, ...]:
    merged: dict[tuple[AttentionKind, int, int | None], int] = {}
    for layer in layers:
        if not layer.owns_kv:
            continue
        page = _page_bytes(layer, flags, block, width)
        window = layer.window_tokens
        kind = layer.kind
        if kind is AttentionKind.SLIDING and flags.disable_sliding_window:
            kind, window = AttentionKind.FULL, None
        key = (kind, page, window)
        merged[key] = merged.get(key, 0) + layer.count
    caches = tuple(
        LayerCache(kind=kind, layers=count, block_tokens=block, page_bytes=page, window_tokens=window)
        for (kind, page, window), count in merged.items()
    )
    if (flags.kv_cache_dtype or "").startswith("turboquant") and len(caches) == 1 and caches[0].layers > PLAIN_ENDS:
        plain = _merged(layers, replace(flags, kv_cache_dtype=None), block, 2)
        return (replace(caches[0], layers=caches[0].layers - PLAIN_ENDS), replace(plain[0], layers=PLAIN_ENDS))
    return caches


def _page_bytes(layer: LayerGroup, flags: Flags, block: int, width: int) -> int:
    if layer.kind is AttentionKind.LATENT:
        if layer.index_bytes is None:
            return block * layer.latent_elements * width
        return block * (layer.index_bytes + (_SPARSE_FP8_BYTES if width == 1 else layer.latent_elements * width))
    if layer.recurrent is not None:
        state = layer.recurrent
        guessed = flags.speculative_config.tokens if flags.speculative_config else 0
        asked = flags.mamba_ssm_cache_dtype or "auto"
        width_bytes = state.ssm_bytes_per_element if asked == "auto" else 2 if asked.endswith("16") else 4
        conv = state.conv_elements + guessed * state.conv_elements_per_token
        return (conv * 2 + state.ssm_elements * width_bytes) // flags.tp
    heads = max(1, layer.kv_heads // flags.tp)
    if (slot := slot_bytes(layer, flags)) is not None:
        return block * heads * slot
    scales = 2 * 4 if (flags.kv_cache_dtype or "").endswith("per_token_head") else 0
    return block * heads * (2 * layer.head_dim * width + scales)


def _mamba_aligned(caches: tuple[LayerCache, ...], rules: VersionRules) -> tuple[LayerCache, ...]:
    """Grow attention blocks until a page is at least as large as the recurrent state, then pad the state to it.

    They grow in steps of their kernel's 16 tokens, latent ones of 64 and later 128; from 0.20 to then some kernels of
    theirs take smaller steps. Kimi Linear over two cards has blocks of 960 for its 75,840 tokens (vLLM issue 28228).
    From 0.20 on a given block size is the least step: with 128, Qwen 3.6 35B-A3B has blocks of 1,152 tokens, not 1,056.

    Source: vllm/model_executor/models/config.py of 0.12.0 to 0.19.0, vllm/platforms/interface.py of 0.20.0 to 0.33.0
    (_align_hybrid_block_size), read 2026-11-27.
    """
    latent = _LATENT_STEP_OF_PAIRS if rules.numbers >= _LATENT_PAIRS_FROM else _LATENT_STEP
    states = [cache.page_bytes for cache in caches if cache.kind is AttentionKind.RECURRENT]
    if not states:
        return caches
    aligned = []
    for cache in caches:
        if cache.kind is not AttentionKind.RECURRENT:
            per_token = cache.page_bytes // cache.block_tokens
            step = latent if cache.kind is AttentionKind.LATENT else BLOCK_TOKENS
            if rules.numbers >= _STEPS_AS_GIVEN_FROM:
                step = max(step, cache.block_tokens)
            block = max(cache.block_tokens, step * ceil(max(states) / (step * per_token)))
            aligned.append(replace(cache, block_tokens=block, page_bytes=block * per_token))
    page = max((cache.page_bytes for cache in aligned), default=max(states))
    rest = [replace(cache, page_bytes=page) for cache in caches if cache.kind is AttentionKind.RECURRENT]
    return (*aligned, *rest)


def _unified(caches: tuple[LayerCache, ...], *, pads: bool) -> tuple[tuple[LayerCache, ...], bool]:
    """Give every layer the largest page: by longer blocks where it divides, else by padding.

    Versions that cannot pad refuse pages that do not divide; patched ones were seen to lengthen blocks first, to the
    last whole multiple, and to pad the rest (466,892 tokens in 10.82 GiB for the 31B, 0.03 % off).
    """
    largest = max(cache.page_bytes for cache in caches)
    padded = any(largest % cache.page_bytes for cache in caches)

    def growth(cache: LayerCache) -> int:
        if cache.kind is AttentionKind.RECURRENT:
            return 1
        return largest // cache.page_bytes if largest % cache.page_bytes == 0 or not pads else 1

    grown = (replace(each, page_bytes=largest, block_tokens=each.block_tokens * growth(each)) for each in caches)
    return tuple(grown), padded
