"""Run by an interpreter that has vLLM: its own KV cache planner on layer specs read from standard input.

Each line is {"layers": [[kind, count, heads, head_dim, window, block], ...], "bytes": width, "length", "batch",
"in_flight", "available"}; the answer has blocks, tokens and concurrency, or the refusal. A kind is "full", "sliding",
"latent" (plain), "sparse" (with an indexer beside it), "follower" (sparse by another layer's indexer) or "indexer",
whose head size is bytes of one token.
"""

import json
import sys
from types import SimpleNamespace

import torch
from vllm.v1.core import kv_cache_utils as planner
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheLayout,
    MLAAttentionSpec,
    SlidingWindowSpec,
    SparseCacheRole,
)


def specs_of(row):
    dtype = torch.bfloat16 if row["bytes"] == 2 else torch.float8_e4m3fn
    specs = {}
    for kind, count, heads, head_dim, window, block in row["layers"]:
        for _ in range(count):
            common = {"block_size": block, "num_kv_heads": heads, "head_size": head_dim, "dtype": dtype}
            name = f"layers.{len(specs)}.attn"
            if kind == "sliding":
                specs[name] = SlidingWindowSpec(**common, sliding_window=window, dcp_sharded=False)
            elif kind == "full":
                specs[name] = FullAttentionSpec(**common)
            else:
                specs[name] = latent_spec(kind, common, packed=row["bytes"] == 1)
    return specs


def latent_spec(kind, common, *, packed):
    """As MLAAttention and DeepseekV32IndexerCache of vLLM 0.32 make them."""
    if kind == "indexer":
        return MLAAttentionSpec(**{**common, "dtype": torch.uint8}, max_tp_shards=1, cache_role=SparseCacheRole.INDEXER)
    if kind in {"sparse", "follower"} and packed:
        return MLAAttentionSpec(
            **{**common, "dtype": torch.uint8},
            max_tp_shards=1,
            cache_dtype_str="fp8_ds_mla",
            state_content_bytes=656,
            is_index_group_leader=kind == "sparse",
        )
    return MLAAttentionSpec(**common, max_tp_shards=1, is_index_group_leader=kind == "sparse")


def config_of(row):
    return SimpleNamespace(
        model_config=SimpleNamespace(max_model_len=row["length"], original_max_model_len=row["length"]),
        attention_config=SimpleNamespace(hisparse_config=None),
        speculative_config=None,
        parallel_config=SimpleNamespace(
            decode_context_parallel_size=1,
            prefill_context_parallel_size=1,
            tensor_parallel_size=1,
            pipeline_parallel_size=1,
        ),
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=None,
            prefix_cache_retention_interval=None,
            enable_prefix_caching=True,
            mamba_cache_mode="none",
            get_resolved_kv_cache_layout=lambda: KVCacheLayout["LBNHC"],
        ),
        scheduler_config=SimpleNamespace(disable_hybrid_kv_cache_manager=False, max_num_batched_tokens=row["batch"]),
        kv_transfer_config=None,
        num_prefill_lookahead_tokens=0,
        device_config=SimpleNamespace(device_type="cuda"),
        max_in_flight_tokens=row["in_flight"],
    )


def main():
    for line in sys.stdin:
        row = json.loads(line)
        config = config_of(row)
        try:
            planned = planner.get_kv_cache_configs(config, [specs_of(row)], [row["available"]])[0]
            tokens, concurrency = planner.get_kv_cache_capacity(config, planned)
            print(json.dumps({"blocks": planned.num_blocks, "tokens": tokens, "concurrency": concurrency}))
        except ValueError as refused:
            print(json.dumps({"refused": str(refused)[:80]}))


main()
