"""The report speaks the contract's words and no others."""

KEYS = [
    "fits", "reason", "weights_bytes", "kv_cache_bytes", "kv_bytes_per_request", "num_gpu_blocks", "kv_block_tokens",
    "kv_blocks_per_request", "kv_tokens", "kv_capacity_tokens", "max_concurrency", "overheads", "budget_bytes", "total_bytes",
    "required_bytes", "shortfall_bytes", "ranges", "decode_tokens_per_s", "cost_usd_per_h", "assumptions", "sources",
]  # fmt: skip


def test_keys_are_the_contracts_in_its_order(ask):
    told = ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192").to_contract()
    assert list(told) == KEYS
    assert list(told["overheads"]) == ["load_transient", "activations", "non_torch", "cuda_graphs"]


def test_scalars_lie_in_their_ranges(ask):
    told = ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192").to_contract()
    assert {"weights_bytes", "kv_cache_bytes", "kv_tokens", "max_concurrency", "overheads.activations"} <= set(
        told["ranges"]
    )
    for key, (low, high) in told["ranges"].items():
        value = told["overheads"][key.removeprefix("overheads.")] if key.startswith("overheads.") else told[key]
        assert low <= value <= high, key


def test_a_budget_is_total_times_utilisation_rounded_up(ask):
    report = ask("Qwen/Qwen3-8B", "nvidia-l4", "--gpu-memory-utilization 0.9")
    assert report.budget_bytes.best == -int(-report.total_bytes.best * 0.9 // 1)


def test_what_is_unknown_is_null(ask):
    told = ask("Qwen/Qwen3-8B", "cpu", "--max-model-len 4096").to_contract()
    assert (told["fits"], told["reason"]) == (None, "unknown")
    assert told["kv_tokens"] is told["total_bytes"] is told["kv_cache_bytes"] is None


def test_sources_name_model_accelerator_and_rules(ask):
    sources = " ".join(ask("Qwen/Qwen3-8B", "nvidia-l4", vllm="0.27").sources)
    assert "config.json of Qwen" in sources
    assert "nvidia-l4" in sources
    assert "vLLM wheel 0.27.0" in sources
