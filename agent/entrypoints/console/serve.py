"""Where the console listens: a port of this machine."""

import socket

from agent.entrypoints.console.server import BACKLOG, ConsoleServer, Wsgi
from agent.errors import InputRejected

ADDRESS = "127.0.0.1"


def claim(port: int) -> socket.socket:
    """Take a port of this machine, before anything is made that would need it.

    Args:
        port: 0 takes a free one; ``getsockname()`` tells which.

    Raises:
        InputRejected: The port is none, taken, or not ours to take.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((ADDRESS, port))
        held.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        held.close()
        raise InputRejected(
            f"the console was not started on port {port}",
            why="something else listens there, or the port is not allowed",
            hint="stop it, or choose another: sre-agent up --port 8081",
        ) from error
    return held


def local_server(app: Wsgi, *, at: socket.socket) -> ConsoleServer:
    """Return a server bound to this machine alone; ``serve_forever()`` runs it, ``shutdown()`` ends it.

    Args:
        app: The console.
        at: What :func:`claim` gave; the server keeps a handle of its own, the caller closes this one.
    """
    return ConsoleServer(app, listener=at.dup())
