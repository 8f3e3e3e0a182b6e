"""The one client for outgoing HTTP: a deadline over the whole call, a limit of bytes, checked addresses."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from agent.adapters.http.deadline import Deadline
from agent.adapters.http.public_address import Address, is_public
from agent.adapters.http.target import PlainHttp, Target, TargetRefused, parse_target

if TYPE_CHECKING:
    from agent.adapters.http.wire import Response, Wire

LIMIT_BYTES: Final = 1_048_576
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_KEEP_THE_BODY: Final = frozenset({307, 308})


@dataclass(frozen=True, kw_only=True)
class HttpResponse:
    """A whole answer; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Sends requests, each inside its own limits. For many threads; one open stream for each thread.

    https goes through the proxy of the environment (``HTTPS_PROXY``, ``NO_PROXY``) where there is one; nothing does
    where ``allowed`` is given, and never what goes to this machine. Compression, cookies and .netrc are not used.

    Args:
        timeout_s: For the whole call: looking the host up, connecting, sending, and the last byte of the answer.
        limit_bytes: The most that is received for one call, headers included.
        redirects: How many are followed; ``Authorization`` stays with the first host, and https never leads to http.
        plain_http: With whom http is spoken too.
        allowed: Which addresses may be reached; None allows all. A host is looked up once for each hop, all of its
            addresses must be allowed, and the connection goes to those very addresses (no DNS rebinding).
        resolve: Looks a host up; the system's resolver when None.
        tls: Verifies certificates against the host's name; the system's authorities when None.
        keep_alive: Whether connections are kept for the next call.
    """

    def __init__(
        self,
        *,
        timeout_s: float,
        limit_bytes: int = LIMIT_BYTES,
        redirects: int = 0,
        plain_http: PlainHttp = PlainHttp.LOOPBACK,
        allowed: Callable[[Address], bool] | None = None,
        resolve: Callable[[str, int], tuple[Address, ...]] | None = None,
        tls: ssl.SSLContext | None = None,
        keep_alive: bool = False,
    ) -> None:
        self._timeout_s, self._limit_bytes, self._redirects = timeout_s, limit_bytes, redirects
        self._plain_http, self._allowed, self._resolve = plain_http, allowed, resolve
        self._tls, self._keep_alive = tls, keep_alive
        self._lock = threading.Lock()
        self._wire: Wire | None = None

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
        limit_bytes: int | None = None,
    ) -> "Iterator[Response]":
        """Send a request and give its answer as it comes; the connection is closed where the block is left early.

        Raises:
            TargetRefused: The address, or one that it redirects to, is none that we speak to.
            HttpFailed: There is no answer.
        """
        from agent.adapters.http.wire import Limits

        limits = Limits(Deadline(timeout_s or self._timeout_s), limit_bytes or self._limit_bytes)
        first = target = parse_target(url, self._plain_http)
        asked = dict(headers or {})
        for _ in range(self._redirects + 1):
            if target.origin != first.origin:
                asked = {name: value for name, value in asked.items() if name.lower() != "authorization"}
            with self._connected().exchange(method, target, asked, body, limits) as response:
                location = response.headers.get("location") if response.status in REDIRECTS else None
                if not self._redirects or not location:
                    yield response
                    return
            target, url = self._next(method, target, url, response.status, location)
        raise TargetRefused(target.host, f"it redirects more than {self._redirects} times")

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
    ) -> HttpResponse:
        """Send a request and return the whole answer; errors as in :meth:`stream`."""
        with self.stream(method, url, headers=headers, body=body, timeout_s=timeout_s) as response:
            return HttpResponse(status=response.status, headers=response.headers, body=response.read())

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes) -> int:
        """Send a request and return its status; nothing of the answer's body is read. Errors as in :meth:`stream`."""
        with self.stream(method, url, headers=headers, body=body) as response:
            return response.status

    def close(self) -> None:
        """Close the connections that are kept."""
        if self._wire is not None:
            self._wire.close()

    def _next(self, method: str, target: Target, url: str, status: int, location: str) -> tuple[Target, str]:
        if method not in {"GET", "HEAD"} and status not in _KEEP_THE_BODY:
            raise TargetRefused(target.host, f"it redirects with {status}, which would lose the body")
        url = urljoin(url, location)
        plain = PlainHttp.NEVER if target.scheme == "https" else self._plain_http
        return parse_target(url, plain), url

    def _connected(self) -> "Wire":
        """Return the connections; made at the first request, because the library costs a tenth of a second."""
        from agent.adapters.http.wire import Wire

        with self._lock:
            if self._wire is None:
                self._wire = Wire(
                    allowed=self._allowed, resolve=self._resolve, tls=self._tls, keep_alive=self._keep_alive
                )
            return self._wire


def public_client(*, timeout_s: float = 10.0) -> HttpClient:
    """Return a client for addresses that a person gave: public addresses over https, three redirects at most."""
    return HttpClient(timeout_s=timeout_s, redirects=3, plain_http=PlainHttp.NEVER, allowed=is_public)
