"""Startup time, decode speed and price."""
