"""The console behind a server: werkzeug's threaded one on this machine, or as one HTTP function in the cloud."""

import socket
from collections.abc import Callable

from flask import Flask, Request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

from agent.errors import InputRejected

ADDRESS = "127.0.0.1"


class _Quiet(WSGIRequestHandler):
    """Writes no line for each request, and does not say which software answers."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing: incidents and decisions have their own record."""

    def version_string(self) -> str:
        return "sre-agent"


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
        held.listen()
    except (OSError, OverflowError) as error:
        held.close()
        raise InputRejected(
            f"the console was not started on port {port}",
            why="something else listens there, or the port is not allowed",
            mend="stop it, or choose another: sre-agent up --port 8081",
        ) from error
    return held


def local_server(app: Flask, *, at: socket.socket) -> BaseWSGIServer:
    """Return a server bound to this machine alone; ``serve_forever()`` runs it, ``shutdown()`` ends it.

    Args:
        app: The console.
        at: What :func:`claim` gave; the server keeps a handle of its own, the caller closes this one.
    """
    port = at.getsockname()[1]
    server = make_server(ADDRESS, port, app, threaded=True, request_handler=_Quiet, fd=at.fileno())
    server.server_name, server.server_port = ADDRESS, port  # what binding would have set
    return server


def as_function(app: Flask) -> Callable[[Request], Response]:
    """Return the console as the one function that functions-framework calls for every path."""

    def console(request: Request) -> Response:
        return Response.from_app(app.wsgi_app, request.environ)

    return console
