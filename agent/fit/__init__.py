"""Does it fit? vLLM's memory rules by version, the search for flags, price and probe budget; pure."""
