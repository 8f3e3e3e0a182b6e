"""An HTTP server on loopback, plain and with TLS, that answers as it is told and notes what came."""

import ipaddress
import ssl

import pytest

from tests.certificates import own_certificate
from tests.loopback import Loopback

NAME = "hooks.example.com"


class Site(Loopback):
    """``answers``: what is said next; ``seen``: headers of each request; ``peers``: its connection."""

    def __init__(self, tls=None):
        self.answers, self.seen, self.peers, self.tunnels = [], [], [], []
        super().__init__(self.answer, methods=["GET", "CONNECT"], keep_alive=True, tls=tls)
        self.url += "/"

    def answer(self, request):
        if request.command == "CONNECT":
            self.tunnels.append((request.path, request.headers.get("Proxy-Authorization")))
            return 405, b""
        self.seen.append({name.lower(): value for name, value in request.headers.items()})
        self.peers.append(request.client_address)
        status, headers, body = self.answers.pop(0) if self.answers else (200, {}, b"ok")
        return status, body, headers

    def resolve(self, host, port):
        return (ipaddress.ip_address("127.0.0.1"),)


@pytest.fixture
def site():
    made = Site()
    yield made
    made.close()


@pytest.fixture
def tls_site():
    """A site whose certificate is its own authority and names ``NAME`` alone."""
    certificate, context = own_certificate(NAME)
    made = Site(context)
    made.trust = ssl.create_default_context(cadata=certificate)
    yield made
    made.close()
