"""Rules that weigh several findings against each other."""
