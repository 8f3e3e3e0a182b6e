"""Where a request goes: a URL, read strictly before anything is looked up or sent."""

import ipaddress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import quote, urlsplit

from agent.errors import PolicyRefused

_PORTS: Final = {"http": 80, "https": 443}
_URL_SIGNS: Final = "!#$%&'()*+,/:;=?@[]~"  # RFC 3986: reserved, and "%" of what is quoted already


class PlainHttp(StrEnum):
    """With whom http is spoken beside https."""

    NEVER = "never"
    LOOPBACK = "loopback"  # this machine alone
    ALWAYS = "always"  # addresses of the operator's own settings


class TargetRefused(PolicyRefused):
    """We do not send anything to this address; its path is not repeated, it may hold a secret."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"nothing was sent to {host!r}", why=why, hint="name a public https address")


@dataclass(frozen=True, kw_only=True)
class Target:
    """A URL in parts.

    Attributes:
        host: ASCII, without brackets.
        path: Path and query, quoted.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: whoever shares them may see the same secrets."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(url: str, plain_http: PlainHttp) -> Target:
    """Return the parts of an address that we may speak to.

    Raises:
        TargetRefused: It is no URL, not https, or carries a user.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError as error:
        raise TargetRefused("", "it is no URL") from error
    plain = plain_http is PlainHttp.ALWAYS or (plain_http is PlainHttp.LOOPBACK and is_loopback(host))
    if parts.scheme != "https" and not (parts.scheme == "http" and plain):
        raise TargetRefused(host, f"{parts.scheme or 'no scheme'!r} is not spoken, want https")
    if not host or parts.username is not None or parts.password is not None or "%" in host:
        raise TargetRefused(host, "it names no host, or carries a user")
    if any(ord(sign) <= 32 or ord(sign) == 127 or sign == "\\" for sign in url):
        raise TargetRefused(host, "it holds a control character or a backslash")
    path = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=_URL_SIGNS)
    return Target(scheme=parts.scheme, host=host, port=port or _PORTS[parts.scheme], path=path)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its address or by the name ``localhost``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
