"""Who wakes us: envelopes, command line, web."""
