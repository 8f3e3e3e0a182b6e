"""What stands before every page: who may ask, from where, and which headers every answer carries."""

import ipaddress
from urllib.parse import urlsplit

from flask import Request, Response

from agent.errors import PolicyRefused

POLICY = "Content-Security-Policy"
FOLLOWS = "X-Sre-Follows"
"""Marks, until it is sent, the answer of a page that follows an incident with our own script; no other may run one."""
SECURITY_HEADERS = {
    POLICY: ("default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # "no-referrer" would make browsers send "Origin: null" with our own forms
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Robots-Tag": "noindex, nofollow",
}

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})

CARRIERS = ("Forwarded", "Via", "X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip")
"""What tunnels and proxies say of whom they carry, besides ``X-Forwarded-*``; who they carry cannot take it away."""


def with_headers(response: Response) -> Response:
    """Return the answer with the headers of every answer; pages are never stored."""
    for name, value in SECURITY_HEADERS.items():
        response.headers[name] = value
    if response.headers.pop(FOLLOWS, None) is not None:
        response.headers[POLICY] = f"{SECURITY_HEADERS[POLICY]}; script-src 'self'; connect-src 'self'"
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def check_local(request: Request) -> None:
    """Refuse whatever does not come from this machine under this machine's name.

    A name that an attacker owns can be made to point here (DNS rebinding); then the Host header carries that name. A
    tunnel that brings Slack's presses here may write this machine's name for everybody whom it carries.

    Raises:
        PolicyRefused: The host name or the sender is not this machine.
    """
    name = _host_name(request)
    if name not in LOCAL_NAMES:
        raise _not_here(f"it was asked for under the name {name[:60]!r}")
    carrier = next((n for n in request.headers.keys() if n.title() in CARRIERS or _forwarded(n)), None)  # noqa: SIM118 - werkzeug's headers iterate over pairs
    if carrier is not None:
        raise _not_here(f"it came through a tunnel or a proxy, which says so with {carrier[:40]!r}")
    sender = request.remote_addr or ""
    try:
        near = ipaddress.ip_address(sender).is_loopback
    except ValueError:
        near = False
    if not near:
        raise _not_here(f"it was asked from {sender[:60]!r}")


def _forwarded(header: str) -> bool:
    return header.lower().startswith("x-forwarded-")


def check_name(request: Request, public_url: str) -> None:
    """Refuse a name that an attacker may have pointed here; addresses, this machine's names and our own are taken.

    Raises:
        PolicyRefused: It is another name.
    """
    name = _host_name(request)
    try:
        ipaddress.ip_address(name)
    except ValueError:
        if name not in LOCAL_NAMES and name != urlsplit(public_url).hostname:
            raise PolicyRefused(
                "the page was not shown",
                why=f"it was asked for under the name {name[:60]!r}, which is not ours",
                hint="set PUBLIC_URL to the address under which people reach the console, or use kubectl port-forward",
            ) from None


def own_origin(request: Request, *, by_host: bool, public_url: str) -> str:
    """Return ``scheme://host[:port]`` as people's browsers see us.

    Args:
        request: The request at hand.
        by_host: Whether the request's own host is what the browser asked for; behind a proxy it is what the proxy
            made of it, so the setting decides.
        public_url: The setting.
    """
    parts = urlsplit(public_url)
    host = request.headers.get("Host", "")
    return f"http://{host}" if by_host and host != parts.netloc else f"{parts.scheme}://{parts.netloc}"


def is_private(origin: str) -> bool:
    """Whether nobody between the browser and us can read what is sent: encrypted, or this machine's own address."""
    parts = urlsplit(origin)
    return parts.scheme == "https" or (parts.hostname or "") in LOCAL_NAMES


def _host_name(request: Request) -> str:
    host = urlsplit(f"//{request.headers.get('Host', '')}")
    try:
        name = host.hostname or ""
        _ = host.port
    except ValueError:
        return ""
    return name


def _not_here(why: str) -> PolicyRefused:
    return PolicyRefused(
        "this console is for this machine only",
        why=why,
        hint="open http://127.0.0.1:<port>/ on the machine itself, or put the console behind IAP (IAP_AUDIENCE)",
    )
