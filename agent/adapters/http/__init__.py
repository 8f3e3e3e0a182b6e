"""Outgoing HTTP: one client with a deadline, a limit of bytes and checked addresses."""
