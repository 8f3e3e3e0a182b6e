"""Checkpoints where they lie: a folder, Cloud Storage, any HTTPS address, the Hugging Face hub."""
