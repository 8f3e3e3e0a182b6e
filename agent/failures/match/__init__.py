"""The matcher: phrases of the catalogue found in a text, in one pass."""
