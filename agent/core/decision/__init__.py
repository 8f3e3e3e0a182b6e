"""Decisions, policy, signed requests and the audit record."""
