"""A vLLM server on this machine, supervised."""
