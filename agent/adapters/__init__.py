"""Implementations of the ports, each named for what it talks to."""
