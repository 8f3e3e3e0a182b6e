"""An HTTP transport with one deadline over everything: connecting, headers that drip, a body that never ends."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore2
import httpx2

BODY_LIMIT = 1_048_576  # bytes read for one request; an answer of 700 tokens in pieces has a fifth of it
_READ_AT_ONCE = 65_536

_ERRORS: tuple[tuple[type[Exception], type[httpx2.TransportError]], ...] = (
    (httpcore2.ConnectTimeout, httpx2.ConnectTimeout),
    (httpcore2.TimeoutException, httpx2.ReadTimeout),
    (httpcore2.ConnectError, httpx2.ConnectError),
    (httpcore2.ProtocolError, httpx2.RemoteProtocolError),
    (httpcore2.NetworkError, httpx2.ReadError),
    (httpcore2.UnsupportedProtocol, httpx2.UnsupportedProtocol),
)


class Deadline:
    """A moment that does not move.

    Args:
        seconds: From now on.
    """

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds that are left, never below nothing."""
        return max(0.0, self._until - time.monotonic())


class _Stream(httpcore2.NetworkStream):
    """A connection whose every read and write ends with the deadline."""

    def __init__(self, inner: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline
        self._read = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._inner.read(min(max_bytes, _READ_AT_ONCE), self._left(timeout))
        self._read += len(data)
        if self._read > BODY_LIMIT:
            raise httpcore2.ReadError(f"the server sent more than {BODY_LIMIT} bytes")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_Stream":
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, self._left(timeout)), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def _left(self, timeout: float | None) -> float:
        left = self._deadline.left_s
        if left <= 0:
            raise httpcore2.ReadTimeout("the deadline is over")
        return left if timeout is None else min(left, timeout)


class _Backend(httpcore2.SyncBackend):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._deadline.left_s
        if left <= 0:
            raise httpcore2.ConnectTimeout("the deadline is over")
        most = left if timeout is None else min(left, timeout)
        return _Stream(super().connect_tcp(host, port, most, local_address, socket_options), self._deadline)


class _Body(httpx2.SyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._inner
        except Exception as error:
            raise _translated(error) from error

    def close(self) -> None:
        self._inner.close()


class DeadlineTransport(httpx2.BaseTransport):
    """HTTP/1.1 without proxies, compression or kept connections; whatever the server does, it ends by the deadline.

    Args:
        deadline: Over all requests that go through it.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            max_keepalive_connections=0,
            network_backend=_Backend(deadline),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            httpx2.TransportError: Anything went wrong on the way, time included.
        """
        request.headers["Accept-Encoding"] = "identity"
        url = request.url
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answered = self._pool.handle_request(asked)
        except Exception as error:
            raise _translated(error) from error
        response = httpx2.Response(
            status_code=answered.status,
            headers=answered.headers,
            stream=_Body(answered.stream),
            extensions=answered.extensions,
        )
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            response.close()
            raise httpx2.RemoteProtocolError("the server compressed its answer unasked")
        return response

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


def _translated(error: Exception) -> Exception:
    for foreign, ours in _ERRORS:
        if isinstance(error, foreign):
            return ours(str(error))
    return error
