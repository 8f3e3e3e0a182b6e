"""Google clients that several adapters share: signing keys, ID tokens."""
