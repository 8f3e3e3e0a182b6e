"""S12: only public addresses are written to, whatever their name, their writing, or where they redirect."""

import contextlib
import http.server
import ipaddress
import socket
import threading
import time
from contextlib import nullcontext

import pytest

from agent.adapters.net.guarded_post import GuardedPost, resolved
from agent.adapters.net.public_address import is_public
from agent.errors import DependencyFailed, PolicyRefused

PRIVATE = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.0.9",
    "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "233.252.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:169.254.169.254", "::127.0.0.1", "::8.8.8.8",
    "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "2620:4f:8000::1", "3fff::1",
    "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "52.95.110.1", "192.0.1.1", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"]


@pytest.mark.parametrize("text", PRIVATE)
def test_an_address_that_is_not_of_the_internet_is_refused(text):
    assert not is_public(ipaddress.ip_address(text))
    post = GuardedPost(resolve=lambda host, port: (ipaddress.ip_address("8.8.8.8"), ipaddress.ip_address(text)))
    with pytest.raises(PolicyRefused, match="not public"):
        post.post("https://hooks.example.com/x", b"", {})


@pytest.mark.parametrize("text", PUBLIC)
def test_an_address_of_the_internet_is_not(text):
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/", "https://2130706433/", "https://0x7f.1/", "https://127.1/", "https://0177.0.0.1/",
        "https://localhost/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/",
        "https://169.254.169.254/computeMetadata/v1/", "https://0/", "https://[fe80::1%25eth0]/",
    ],
)  # fmt: skip
def test_no_writing_of_a_private_address_gets_through(url):
    """With this machine's own resolver, which reads octal, hexadecimal and short forms."""
    with pytest.raises((PolicyRefused, DependencyFailed)):
        GuardedPost().post(url, b"", {})


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "https://", "https:///x",
        "https://user@example.com/", "https://user:pass@example.com/", "https://example.com:99999/", "https://[::1/",
        "https://exa mple.com/", "https://example.com/\r\nHost: x", "https://example.com\\@127.0.0.1/", "//example.com/", "",
    ],
)  # fmt: skip
def test_what_is_no_plain_https_address_is_refused_before_anything_is_looked_up(url):
    def looked_up(host, port):
        raise AssertionError(host)

    with pytest.raises(PolicyRefused):
        GuardedPost(resolve=looked_up).post(url, b"", {})


def test_a_name_without_an_address_is_a_failure_that_may_pass():
    with pytest.raises(DependencyFailed):
        resolved("no-such-host.invalid", 443)
    with pytest.raises(PolicyRefused):
        GuardedPost(resolve=lambda host, port: ()).post("https://example.com/", b"", {})


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.got.append((self.path, body, dict(self.headers)))
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def receiving(*answers):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.got, server.answers = [], list(answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def here(asked, *, public=("127.0.0.1",)):
    """A post that takes some addresses for public, and notes what was looked up."""

    def resolve(host, port):
        asked.append(host)
        return (ipaddress.ip_address("10.0.0.1" if host.startswith("inside") else "127.0.0.1"),)

    return GuardedPost(schemes=frozenset({"http"}), allowed=lambda a: str(a) in public, resolve=resolve, timeout_s=5)


def test_a_host_is_looked_up_once_and_that_address_is_reached():
    """A name that changes between look and use (DNS rebinding) finds nothing to change."""
    asked = []
    with receiving() as server:
        answer = here(asked).post(f"http://hooks.example.com:{server.server_port}/a?b=c", b"body", {"x": "y"})
    assert answer.status == 200
    assert asked == ["hooks.example.com"]
    [(path, body, headers)] = server.got
    assert (path, body, headers["x"]) == ("/a?b=c", b"body", "y")
    assert headers["host"] == f"hooks.example.com:{server.server_port}"


def test_a_redirect_is_looked_at_afresh():
    with receiving((307, {"Location": "/second"}), (200, {})) as server:
        asked = []
        here(asked).post(f"http://hooks.example.com:{server.server_port}/first", b"x", {})
    assert [path for path, _, _ in server.got] == ["/first", "/second"]
    assert asked == ["hooks.example.com"] * 2


@pytest.mark.parametrize(
    "target",
    [
        "http://inside.example.com/x",
        "https://hooks.example.com/",
        "file:///etc/passwd",
        "http://u:p@hooks.example.com/",
    ],
)
def test_a_redirect_to_the_inside_is_refused(target):
    with receiving((307, {"Location": target})) as server, pytest.raises(PolicyRefused):
        here([]).post(f"http://hooks.example.com:{server.server_port}/", b"x", {})
    assert len(server.got) == 1


def test_a_redirect_that_would_lose_the_body_or_never_ends_is_refused():
    with receiving((302, {"Location": "/b"})) as server, pytest.raises(PolicyRefused, match="lose the body"):
        here([]).post(f"http://hooks.example.com:{server.server_port}/", b"x", {})
    with receiving(*[(308, {"Location": "/b"})] * 9) as server, pytest.raises(PolicyRefused, match="more than 3"):
        here([]).post(f"http://hooks.example.com:{server.server_port}/", b"x", {})


def test_nobody_there_is_a_failure_that_may_pass():
    with receiving() as server:
        port = server.server_port
    with pytest.raises(DependencyFailed):
        here([]).post(f"http://hooks.example.com:{port}/", b"x", {})


@contextlib.contextmanager
def dripping(first):
    """A receiver that says something and then a byte now and then, for as long as anybody listens."""
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve():
        with contextlib.suppress(OSError):
            talker, _ = listener.accept()
            with talker:
                talker.recv(65536)
                talker.sendall(first)
                while not over.wait(0.02):
                    talker.sendall(b"a")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        listener.close()
        thread.join(10)


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Long: ", 200),
        (b"HTTP/1.1 2", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", 200),
    ],
    ids=["a header that never ends", "a status that never ends", "a body that never ends"],
)
def test_who_answers_a_byte_at_a_time_holds_nobody_up(first, status):
    """Each byte is in time; it is the whole answer that must be. A status that was said is heard."""
    post = GuardedPost(
        schemes=frozenset({"http"}),
        allowed=lambda _: True,
        resolve=lambda host, port: (ipaddress.ip_address("127.0.0.1"),),
        timeout_s=0.3,
    )
    with dripping(first) as port:
        began = time.monotonic()
        with nullcontext() if status else pytest.raises(DependencyFailed):
            assert post.post(f"http://hooks.example.com:{port}/", b"x", {}).status == status
        assert time.monotonic() - began < 3


def test_a_secret_in_the_path_is_not_shown():
    with pytest.raises(PolicyRefused) as caught:
        GuardedPost().post("http://hooks.example.com/services/T0/s3cret", b"", {})
    assert "s3cret" not in str(caught.value)
