"""Computes whether a model fits: vLLM's memory rules by version, the search for flags, price and probe budget; pure."""
