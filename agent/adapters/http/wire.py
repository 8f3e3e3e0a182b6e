"""Connections of httpcore2 that end by a deadline and lead to addresses that were looked up once."""

import ipaddress
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import httpcore2

from agent.adapters.http.deadline import Deadline
from agent.adapters.http.failure import Failure, HttpFailed
from agent.adapters.http.public_address import Address
from agent.adapters.http.target import Target, TargetRefused, is_loopback

CONNECT_S: Final = 10.0  # for one address of a host
_AT_ONCE: Final = 65_536  # bytes
_NOT_SENT: Final = (
    httpcore2.ConnectError,
    httpcore2.ConnectTimeout,
    httpcore2.PoolTimeout,
    httpcore2.ProxyError,
    httpcore2.LocalProtocolError,
    httpcore2.UnsupportedProtocol,
    httpcore2.ConnectionNotAvailable,
)
_FOREIGN: Final = (*_NOT_SENT, httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, OSError)


class TooLong(httpcore2.ReadError):
    """More bytes came than one call may receive."""


class Limits:
    """What one call may take.

    Args:
        deadline: When it ends.
        most_bytes: How much may be received.
    """

    def __init__(self, deadline: Deadline, most_bytes: int) -> None:
        self.deadline = deadline
        self._most_bytes = most_bytes
        self._bytes = 0

    def left_s(self, most_s: float | None) -> float:
        """Return the seconds that one step may take.

        Raises:
            httpcore2.ReadTimeout: None are left.
        """
        left = self.deadline.left_s
        if left <= 0:
            raise httpcore2.ReadTimeout("the deadline is over")
        return left if most_s is None else min(left, most_s)

    def count(self, data: bytes) -> bytes:
        """Return data that was received, counted.

        Raises:
            TooLong: It is too much.
        """
        self._bytes += len(data)
        if self._bytes > self._most_bytes:
            raise TooLong(f"it sent more than {self._most_bytes} bytes")
        return data


class _Stream(httpcore2.NetworkStream):
    """A connection whose every read and write ends with the deadline of the call that uses it."""

    def __init__(self, inner: httpcore2.NetworkStream, limits: Callable[[], Limits]) -> None:
        self._inner, self._limits = inner, limits

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limits = self._limits()
        return limits.count(self._inner.read(min(max_bytes, _AT_ONCE), limits.left_s(timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for at in range(0, len(buffer), _AT_ONCE):
            self._inner.write(buffer[at : at + _AT_ONCE], self._limits().left_s(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_Stream":
        left = self._limits().left_s(timeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._limits)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class Backend(httpcore2.SyncBackend):
    """Makes connections; see :class:`agent.adapters.http.client.HttpClient` for ``allowed`` and ``resolve``."""

    def __init__(
        self,
        limits: Callable[[], Limits],
        *,
        allowed: Callable[[Address], bool] | None = None,
        resolve: Callable[[str, int], tuple[Address, ...]] | None = None,
    ) -> None:
        self._limits, self._allowed, self._resolve = limits, allowed, resolve or looked_up

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first address of a host that answers."""
        failed: Exception = httpcore2.ConnectError(f"{host!r} has no address")
        for address in self._addresses(host, port):
            left = self._limits().left_s(CONNECT_S if timeout is None else timeout)
            try:
                inner = super().connect_tcp(str(address), port, left, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(inner, self._limits)
        raise failed

    def _addresses(self, host: str, port: int) -> tuple[Address, ...]:
        found = _within(self._limits().left_s(CONNECT_S), lambda: self._resolve(host, port), host)
        if self._allowed is not None and not (found and all(map(self._allowed, found))):
            raise TargetRefused(host, "its host has an address that is not public")
        return found


def looked_up(host: str, port: int) -> tuple[Address, ...]:
    """Return the addresses of a host, in the resolver's order.

    Raises:
        OSError: There is none now.
        UnicodeError: It is no name of a host.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ipaddress.ip_address(str(entry[4][0])) for entry in found))


def _within(seconds: float, resolve: Callable[[], tuple[Address, ...]], host: str) -> tuple[Address, ...]:
    """Look a host up; a resolver knows no deadline, so it works in a thread of its own."""
    answers: queue.SimpleQueue[tuple[Address, ...] | Exception] = queue.SimpleQueue()

    def look() -> None:
        try:
            answers.put(resolve())
        except Exception as error:  # noqa: BLE001 - raised again where somebody waits for it
            answers.put(error)

    threading.Thread(target=look, name="resolve", daemon=True).start()
    try:
        found = answers.get(timeout=seconds)
    except queue.Empty:
        raise httpcore2.ConnectTimeout(f"{host!r} was not looked up") from None
    if isinstance(found, OSError | UnicodeError):
        raise httpcore2.ConnectError(f"{host!r} was not found: {found}") from found
    if isinstance(found, Exception):
        raise found
    return found


class Response:
    """An answer as it comes.

    Attributes:
        headers: Names in lower case; what was sent several times is joined by commas.
    """

    def __init__(self, inner: httpcore2.Response, host: str, limits: Limits) -> None:
        self._inner, self._host, self._limits = inner, host, limits
        self.status = inner.status
        self.headers: dict[str, str] = {}
        for name, value in inner.headers:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def chunks(self) -> Iterator[bytes]:
        """Give the body in pieces, as they come.

        Raises:
            HttpFailed: It did not end within the limits, or broke off.
        """
        with translated(self._host, self._limits):
            yield from self._inner.iter_stream()

    def read(self, most: int | None = None) -> bytes:
        """Return the body, or its first ``most`` bytes; errors as in :meth:`chunks`."""
        held = bytearray()
        for chunk in self.chunks():
            held += chunk
            if most is not None and len(held) >= most:
                break
        return bytes(held[:most])


class Wire:
    """Pools of connections, by scheme and proxy; arguments as of :class:`agent.adapters.http.client.HttpClient`."""

    def __init__(
        self,
        *,
        allowed: Callable[[Address], bool] | None,
        resolve: Callable[[str, int], tuple[Address, ...]] | None,
        tls: ssl.SSLContext | None,
        keep_alive: bool,
    ) -> None:
        self._call = threading.local()
        self._backend = Backend(lambda: self._call.limits, allowed=allowed, resolve=resolve)
        self._tls, self._kept, self._proxied = tls, 4 if keep_alive else 0, allowed is None
        self._pools: dict[tuple[str, str | None], httpcore2.ConnectionPool] = {}

    @contextmanager
    def exchange(
        self, method: str, target: Target, headers: Mapping[str, str], body: bytes | None, limits: Limits
    ) -> Iterator[Response]:
        """Send one request and give its answer.

        Raises:
            HttpFailed: There is none.
        """
        self._call.limits = limits
        sent = {"Host": target.authority, "User-Agent": "sre-agent", "Accept-Encoding": "identity", **headers}
        if body is not None:
            sent["Content-Length"] = str(len(body))
        request = httpcore2.Request(
            method,
            httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path),
            headers=[(name.encode(), value.encode("latin-1", "replace")) for name, value in sent.items()],
            content=body,
        )
        with translated(target.host, limits):
            inner = self._pool(target).handle_request(request)
        try:
            response = Response(inner, target.host, limits)
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise HttpFailed(target.host, "it compressed its answer unasked", reason=Failure.BROKEN, sent=True)
            yield response
        finally:
            inner.close()

    def close(self) -> None:
        """Close every connection."""
        for pool in self._pools.values():
            pool.close()

    def _pool(self, target: Target) -> httpcore2.ConnectionPool:
        proxy = proxy_for(target.scheme, target.host) if self._proxied else None
        name = (target.scheme, proxy)
        if name not in self._pools:
            tls = (self._tls or system_tls()) if target.scheme == "https" else None
            self._pools[name] = httpcore2.ConnectionPool(
                ssl_context=tls,
                proxy=_as_proxy(proxy) if proxy else None,
                max_connections=None,
                max_keepalive_connections=self._kept,
                network_backend=self._backend,
            )
        return self._pools[name]


@cache
def system_tls() -> ssl.SSLContext:
    """Return what verifies certificates by the system's authorities, or those of ``SSL_CERT_FILE``."""
    return httpcore2.default_ssl_context()


def proxy_for(scheme: str, host: str) -> str | None:
    """Return the proxy of the environment on the way to a host: for https alone, and never to this machine."""
    if scheme != "https" or is_loopback(host):
        return None
    from urllib.request import getproxies, proxy_bypass

    proxy = getproxies().get("https")
    return proxy if proxy and not proxy_bypass(host) else None


def _as_proxy(url: str) -> httpcore2.Proxy:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url if "://" in url else f"http://{url}")
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore2.Proxy(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", auth=auth)


@contextmanager
def translated(host: str, limits: Limits) -> Iterator[None]:
    """Turn what the library and the system raise into one error of ours."""
    try:
        yield
    except _FOREIGN as error:
        sent = not isinstance(error, _NOT_SENT)
        raise HttpFailed(host, _why(error, limits, sent=sent), reason=_reason(error, sent=sent), sent=sent) from error


def _reason(error: BaseException, *, sent: bool) -> Failure:
    if isinstance(error, httpcore2.TimeoutException | TimeoutError):
        return Failure.TIMED_OUT
    if isinstance(error, TooLong):
        return Failure.TOO_LONG
    return Failure.BROKEN if sent else Failure.UNREACHABLE


def _why(error: BaseException, limits: Limits, *, sent: bool) -> str:
    seconds = limits.deadline.seconds
    if _reason(error, sent=sent) is Failure.TIMED_OUT:
        return f"it took more than {seconds:g} s" if sent else f"no connection within {min(seconds, CONNECT_S):g} s"
    if isinstance(error, httpcore2.LocalProtocolError):
        return (
            "a header of ours holds a sign that HTTP does not allow"  # the library repeats it, and it may be a secret
        )
    return str(error)[:200] or type(error).__name__
