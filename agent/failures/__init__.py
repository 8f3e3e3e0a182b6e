"""Finds out what broke: log text in, one failure class with its numbers and fixes out; pure."""
