"""The same deadline and limit for a client library that brings its own HTTP (openai, over httpx2)."""

import httpcore2
import httpx2

from agent.adapters.http.deadline import Deadline
from agent.adapters.http.wire import Backend, Limits, system_tls

LIMIT_BYTES = 2_097_152  # received for one question; an answer of 700 tokens in pieces has a tenth of it


class DeadlineTransport(httpx2.HTTPTransport):
    """HTTP/1.1 without proxies, compression or kept connections; whatever the server does, it ends by the deadline.

    Args:
        deadline: Over all requests that go through it.
    """

    def __init__(self, deadline: Deadline) -> None:
        limits = Limits(deadline, LIMIT_BYTES)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=system_tls(), max_keepalive_connections=0, network_backend=Backend(lambda: limits)
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            httpx2.TransportError: Anything went wrong on the way, time included.
        """
        request.headers["Accept-Encoding"] = "identity"
        response = super().handle_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            response.close()
            raise httpx2.RemoteProtocolError("the server compressed its answer unasked")
        return response
