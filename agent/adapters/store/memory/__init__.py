"""Stores in memory, for analysis and tests."""
