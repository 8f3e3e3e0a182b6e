"""The memory of one device by vLLM's rules: weights, KV cache, overheads."""
