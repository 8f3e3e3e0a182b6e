"""A web server on loopback for a test: each request is handed to a function, which says what is answered."""

import json
import ssl
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Reply = tuple[int, Any] | tuple[int, Any, Mapping[str, str]]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "CONNECT")


class Request(BaseHTTPRequestHandler):
    """One request; ``body`` is what was sent."""

    server: "_Server"
    body = b""

    def handle_method(self) -> None:
        """Ask what is answered, and answer it."""
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        reply = self.server.answer(self)
        if reply is not None:
            self.reply(*reply)

    def json(self) -> Any:
        """Return the body read as JSON."""
        return json.loads(self.body or b"{}")

    def reply(self, status: int, body: Any = b"", headers: Mapping[str, str] | None = None) -> None:
        """Answer with bytes as they are, or with anything else as JSON; headers given win."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = {} if isinstance(body, bytes) else {"Content-Type": "application/json"}
        self.send_response_only(status)  # no Date of its own: a test may have another clock
        for name, value in ({"Content-Length": str(len(raw))} | kind | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    answer: Callable[[Request], Reply | None]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell of a mistake; a client that hangs up is none."""
        if not isinstance(sys.exception(), ConnectionError | ssl.SSLError):
            super().handle_error(request, client_address)


class Loopback:
    """A server; made running, ended by ``close``.

    Args:
        answer: Returns status, body and headers; None where it has answered, or hung up, itself.
        keep_alive: Whether it speaks HTTP/1.1.
        methods: Which it knows; any other is answered with 501, and ``answer`` does not hear of it.
        tls: Wraps its connections.
        host: Where it listens.
    """

    def __init__(
        self,
        answer: Callable[[Request], Reply | None],
        *,
        keep_alive: bool = False,
        methods: Collection[str] = METHODS,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        known = {f"do_{method}": Request.handle_method for method in methods}
        handler = type("Handler", (Request,), known | {"protocol_version": "HTTP/1.1" if keep_alive else "HTTP/1.0"})
        self._server = _Server((host, 0), handler)
        self._server.answer = answer
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_port
        self.url = f"{'http' if tls is None else 'https'}://{host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
