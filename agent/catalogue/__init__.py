"""Data with sources: failures, models, accelerators, prices, vLLM versions; read once, passed in."""
