"""A port for a server that is started later, or again."""

import random
import socket

BELOW_EPHEMERAL = range(20_000, 32_000)
"""The kernel gives none of these to whoever connects, so that one stays free while its server is down."""
_CHANCE = random.SystemRandom()


def free_port() -> int:
    """Return a port of this machine on which nobody listens."""
    while True:
        port = _CHANCE.choice(BELOW_EPHEMERAL)
        with socket.socket() as held:
            try:
                held.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
