"""Where the console listens: a port of this machine, or of an address that the operator names."""

import errno
import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Any

from agent.entrypoints.console.server import BACKLOG, ConsoleServer, Wsgi
from agent.entrypoints.http.slack_request import BODY_LIMIT
from agent.errors import InputRejected

ADDRESS = "127.0.0.1"


def claim(port: int, address: str = ADDRESS) -> socket.socket:
    """Take a port, before anything is made that would need it.

    Args:
        port: 0 takes a free one; ``getsockname()`` tells which.
        address: An address of this machine; ``0.0.0.0`` and ``::`` are all of them.

    Raises:
        InputRejected: The port is none, taken, or not ours to take; or the address is no address of this machine.
    """
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    except ValueError as error:
        raise InputRejected(
            f"the console was not started on {address[:80]!r}",
            why="it is no IP address",
            hint="name an address of this machine, such as: sre-agent up --bind 0.0.0.0",
        ) from error
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((address, port))
        held.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        held.close()
        raise InputRejected(
            f"the console was not started on port {port}",
            why=_why(error, address),
            hint="choose another, 1 to 65535: sre-agent up --port 8081",
        ) from error
    return held


def _why(error: OSError | OverflowError, address: str) -> str:
    if isinstance(error, OverflowError):
        return "there is no such port"
    known = {errno.EADDRINUSE: "it is in use", errno.EADDRNOTAVAIL: f"{address!r} is no address of this machine"}
    return known.get(error.errno or 0, (error.strerror or str(error)).lower())


def local_server(app: Wsgi, *, at: socket.socket, limit: int = BODY_LIMIT) -> ConsoleServer:
    """Return a server; ``serve_forever()`` runs it, ``shutdown()`` ends it.

    Args:
        app: The console.
        at: What :func:`claim` gave; the server keeps a handle of its own, the caller closes this one.
        limit: Most bytes of a body.
    """
    return ConsoleServer(app, listener=at.dup(), limit=limit)


def standby(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """Answer for a replica that waits for its turn: it is well, and not ready."""
    well = environ.get("PATH_INFO") in {"/healthz", "/health"}
    start("200 OK" if well else "503 Service Unavailable", [("Content-Type", "text/plain"), ("Retry-After", "5")])
    return [b"waits for the lease\n"]
