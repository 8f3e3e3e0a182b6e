"""One applied change: execution, drift, observed start, verification."""
