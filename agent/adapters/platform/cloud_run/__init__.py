"""Cloud Run by its Admin API v2."""
