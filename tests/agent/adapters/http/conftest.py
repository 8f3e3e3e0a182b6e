"""An HTTP server on loopback, plain and with TLS, that answers as it is told and notes what came."""

import ipaddress
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = "hooks.example.com"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site = self.server.site
        site.seen.append({name.lower(): value for name, value in self.headers.items()})
        site.peers.append(self.client_address)
        status, headers, body = site.answers.pop(0) if site.answers else (200, {}, b"ok")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self):
        self.server.site.tunnels.append((self.path, self.headers.get("Proxy-Authorization")))
        self.send_error(405)

    def log_message(self, *_):
        pass


class Site:
    """``answers``: what is said next; ``seen``: headers of each request; ``peers``: its connection."""

    def __init__(self, tls=None):
        self.answers, self.seen, self.peers, self.tunnels = [], [], [], []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.site = self
        self.server.handle_error = lambda *_: None
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def resolve(self, host, port):
        return (ipaddress.ip_address("127.0.0.1"),)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def site():
    made = Site()
    yield made
    made.stop()


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
    made.stop()
