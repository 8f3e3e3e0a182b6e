"""vLLM startup flags: read, written and shown."""
