"""How we reach out: only to public addresses, looked at once and then held."""
