"""An HTTP server on loopback, plain and with TLS, that answers as it is told and notes what came."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

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
def tls_site(tmp_path):
    """A site whose certificate is its own authority and names ``NAME`` alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both = tmp_path / "site.pem"
    both.write_bytes(private + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(both)
    made = Site(server)
    made.trust = ssl.create_default_context(cadata=pem.decode())
    yield made
    made.close()
