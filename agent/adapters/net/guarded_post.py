"""Posting to an address that somebody configured: resolved once, pinned, https, redirects looked at afresh."""

import ipaddress
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from agent.adapters.net.in_time import ending
from agent.adapters.net.public_address import Address, is_public
from agent.errors import DependencyFailed, PolicyRefused

REDIRECTS = 3
_KEEPS_THE_METHOD = frozenset({307, 308})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

Resolve = Callable[[str, int], tuple[Address, ...]]


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What came back; ``retry_after_s`` is None where it was not said."""

    status: int
    retry_after_s: float | None = None


def resolved(host: str, port: int) -> tuple[Address, ...]:
    """Return the addresses of a host, in the resolver's order.

    Raises:
        DependencyFailed: There is none now.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise DependencyFailed(f"{host!r} was not found", why=str(error), mend="look at the host's name") from error
    return tuple(dict.fromkeys(ipaddress.ip_address(str(entry[4][0])) for entry in found))


@dataclass(frozen=True, kw_only=True)
class GuardedPost:
    """Posts to public addresses only.

    Attributes:
        timeout_s: For a connection, and again for everything that is said over it.
        schemes: ``https`` alone, but for tests on this machine.
        allowed: Which addresses may be reached.
        resolve: Looks a name up, once for each hop.
        tls: Verifies certificates against the host's name, not the pinned address.
    """

    timeout_s: float = 10.0
    schemes: frozenset[str] = frozenset({"https"})
    allowed: Callable[[Address], bool] = is_public
    resolve: Resolve = resolved
    tls: ssl.SSLContext | None = None

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answered:
        """Post a body and return how it was answered.

        Raises:
            PolicyRefused: The address, or one that it redirects to, is none that we write to.
            DependencyFailed: Nobody answered.
        """
        for _ in range(REDIRECTS + 1):
            answer, location = self._once(url, body, headers)
            if answer.status not in _REDIRECTS or not location:
                return answer
            if answer.status not in _KEEPS_THE_METHOD:
                raise _refused(url, f"it redirects with {answer.status}, which would lose the body")
            url = urljoin(url, location)
        raise _refused(url, f"it redirects more than {REDIRECTS} times")

    def _once(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[Answered, str | None]:
        scheme, host, port, path = self._parts(url)
        address = self._pinned(url, host, port)
        try:
            with self._pool(scheme, host, address, port) as pool:
                netloc = urlsplit(url).netloc
                answer = pool.urlopen(
                    "POST",
                    path,
                    body=body,
                    headers={**headers, "host": netloc, "user-agent": "sre-agent"},
                    redirect=False,
                    retries=False,
                    preload_content=False,
                    assert_same_host=False,
                )
                answer.close()  # nothing of its body is read
        except (HTTPError, OSError, ValueError) as error:
            raise DependencyFailed(
                f"nobody answered at {_shown(url)}", why=type(error).__name__, mend="it is tried again"
            ) from error
        after = answer.headers.get("retry-after", "")
        retry_after = float(after) if after.isascii() and after.isdigit() and len(after) < 6 else None
        return Answered(status=answer.status, retry_after_s=retry_after), answer.headers.get("location")

    def _parts(self, url: str) -> tuple[str, str, int, str]:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise _refused(url, "it is no URL") from error
        if parts.scheme not in self.schemes:
            raise _refused(url, f"it is no {' or '.join(sorted(self.schemes))} address")
        if not host or parts.username is not None or parts.password is not None or "%" in host:
            raise _refused(url, "it names no host, or carries a user")
        if any(ord(sign) <= 32 or ord(sign) == 127 or sign == "\\" for sign in url):
            raise _refused(url, "it holds a control character or a backslash")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return parts.scheme, host, port or (443 if parts.scheme == "https" else 80), path

    def _pinned(self, url: str, host: str, port: int) -> Address:
        """Look the host up once; all of its addresses must be public, and the first is the one that is reached."""
        addresses = self.resolve(host, port)
        if not addresses or not all(self.allowed(address) for address in addresses):
            raise _refused(url, "its host has an address that is not public")
        return addresses[0]

    def _pool(self, scheme: str, host: str, address: Address, port: int) -> urllib3.HTTPConnectionPool:
        timeout = urllib3.Timeout(total=self.timeout_s)
        if scheme == "http":
            plain = urllib3.HTTPConnectionPool(str(address), port, timeout=timeout, maxsize=1)
            plain.ConnectionCls = ending(HTTPConnection, self.timeout_s)
            return plain
        context = self.tls or ssl.create_default_context()
        pool = urllib3.HTTPSConnectionPool(str(address), port, timeout=timeout, maxsize=1, ssl_context=context)
        pool.ConnectionCls = ending(HTTPSConnection, self.timeout_s)
        pool.assert_hostname, pool.conn_kw["server_hostname"] = host, host
        return pool


def _shown(url: str) -> str:
    """The host alone: a path may hold a secret."""
    try:
        return repr(urlsplit(url).hostname or "")
    except ValueError:
        return "an address"


def _refused(url: str, why: str) -> PolicyRefused:
    return PolicyRefused(f"nothing was posted to {_shown(url)}", why=why, mend="name a public https address")
