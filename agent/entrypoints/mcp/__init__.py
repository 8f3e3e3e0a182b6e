"""Operator tools for AI clients: reads, and proposals that a person decides."""
