"""TPU VMs that run vLLM in one container, started from the metadata of their node."""
