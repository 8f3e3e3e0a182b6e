"""The monitor of a server on this machine."""
