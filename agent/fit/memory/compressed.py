"""The KV cache of DeepSeek V4: windows, compressed tokens, their indexer, and the states that compress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.fit.flags.flags import Flags
from agent.fit.memory.kv_cache import KvLayout, LayerCache
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, AttentionKind, LayerGroup, ModelFacts
from agent.fit.version_rules import VersionRules

_BLOCK_TOKENS, _WINDOW, _WINDOW_BLOCK = 256, 128, 64
_ROW_BYTES, _INDEX_BYTES, _ALIGNMENT = 584, 132, 576
_BLACKWELL, _MEASURED_FROM, _ENCODERS_FROM = (10, 0), (0, 23), (0, 11)
_PACKS_BLOCKS_FROM = (0, 29)
_COUNTS_GROUPS_FROM = (0, 30)
_PROFILED_BYTES_PER_TOKEN = 512 * 1024


def compresses(layers: Sequence[LayerGroup]) -> bool:
    """True for DeepSeek V4."""
    return any(layer.compression is not None for layer in layers)


def compressed_peak(model: ModelFacts, batch: int) -> int:
    """The most that a batch of DeepSeek V4 was seen to take while memory is profiled, bytes of one device.

    32.0 GiB were in use beside the weights of each of two H200 for a batch of 65,536, 3.8 for one of 8,192 (0.27.1):
    28.2 GiB for 57,344 tokens, and smaller ones take less for each.
    """
    return batch * _PROFILED_BYTES_PER_TOKEN if compresses(model.layers) else 0


def unseen_caches(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> Iterator[str]:
    """Where start-ups of DeepSeek V4 took more than is counted, or of encoders were not read, one sentence each.

    Two RTX PRO 6000 printed 77.7 GiB of weights each where 73.3 are counted (0.25.0); two GH200 left 5.44 GiB where 12
    are (0.22.0, vllm-project/vllm#44376).
    """
    if model.encodes_only and not accelerator.is_gpu:
        yield "how an encoder without a cache starts without a GPU was not read"
    elif model.encodes_only and rules.numbers < _ENCODERS_FROM:
        yield "how an encoder without a cache started before vLLM 0.11 was not read"
    if not compresses(model.layers):
        return
    if accelerator.kind is not AcceleratorKind.CUDA:
        yield "how DeepSeek V4 lays its cache out elsewhere than on CUDA was not read"
    elif accelerator.supports(_BLACKWELL):
        yield "on Blackwell DeepSeek V4 took some 5 GiB a card more than is counted"
    if rules.numbers < _MEASURED_FROM:
        yield "before vLLM 0.23 DeepSeek V4 took some 7 GiB a card more than is counted"
    if flags.pp > 1 or flags.block_size not in {None, _BLOCK_TOKENS}:
        yield "how DeepSeek V4 lays its cache out over stages, or in other blocks than of 256 tokens, was not read"
    if flags.kv_cache_dtype not in {None, "auto"} and not flags.kv_cache_dtype.startswith("fp8"):
        yield "how DeepSeek V4 lays a cache out that is not of 8-bit floats was not read"


def plan_compressed(layers: Sequence[LayerGroup], rules: VersionRules) -> KvLayout:
    """Lay out the cache of 8-bit floats; tensor parallelism does not divide it.

    Every layer keeps a window of 128 tokens; one of four keeps every fourth token with an index of it, and of 128 every
    128th, each with the state of its compressor, which fits into a page of the same size. Until 0.28 tensors are shared
    slot by slot and a request is counted by its bytes over those of the first group; from 0.29 on a block is as large
    as its largest group, and from 0.30 the blocks of all groups count. 90,841, 82,301 and 2,175,276 tokens were printed
    by 0.23.0, 1,728,531 by 0.31.1.

    Source: vllm/models/deepseek_v4/attention.py and compressor.py, vllm/v1/attention/backends/mla/sparse_swa.py,
    _get_kv_cache_groups_uniform_groups, get_max_concurrency_for_kv_cache_config and _get_packed_kv_cache_groups in
    vllm/v1/core/kv_cache_utils.py of 0.23.0 and 0.31.0, read 2026-11-27.
    """
    count = {ratio: sum(layer.count for layer in layers if layer.compression == ratio) for ratio in (0, 4, 128)}
    row, index, far = (
        _aligned(_BLOCK_TOKENS // 4 * _ROW_BYTES),
        _aligned(_BLOCK_TOKENS // 4 * _INDEX_BYTES),
        _aligned(_BLOCK_TOKENS // 128 * _ROW_BYTES),
    )
    windows = sum(count.values())
    whole = count[4] * (row + index) + count[128] * far
    least = max(count[4], count[128]) if _slots(rules) else count[4]
    repeats = _least_padding([windows, count[4], count[128]], at_least=least)
    groups = -(-windows // repeats)
    slots = max(count[4], count[128], -(-windows // groups))
    if _slots(rules):
        per_block = slots * row + count[4] * index + count[128] * far
    else:
        per_block = max(whole, -(-windows // groups) * row, count[4] * (row + index), count[128] * row)

    def cache(layers: int, block: int, page: int, window: int | None) -> LayerCache:
        kind = AttentionKind.FULL if window is None else AttentionKind.SLIDING
        return LayerCache(kind=kind, layers=layers, block_tokens=block, page_bytes=page, window_tokens=window)

    by_bytes = rules.numbers < _COUNTS_GROUPS_FROM
    caches = (
        cache(1, _BLOCK_TOKENS, whole if by_bytes else 1, None),
        cache(windows if by_bytes else groups, _WINDOW_BLOCK, row if by_bytes else 1, _WINDOW),
        cache(count[4] if by_bytes else 1, 4, row + index if by_bytes else 1, 8),
        cache(count[128] if by_bytes else 1, 8, row if by_bytes else 1, 128),
    )
    return KvLayout(caches=caches, group_layers=1, bytes_per_block=per_block, unit=whole if by_bytes else 1)


def _slots(rules: VersionRules) -> bool:
    return rules.numbers < _PACKS_BLOCKS_FROM


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _least_padding(counts: Sequence[int], *, at_least: int) -> int:
    """The repeats of a group that pad all of them least, the largest of several: ``_approximate_gcd``."""
    return min(range(at_least, max(counts) + 1), key=lambda size: (sum(-each % size for each in counts), -size))
