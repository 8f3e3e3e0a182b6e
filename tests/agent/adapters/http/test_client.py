"""S12: only public addresses are spoken to, whatever their name, their writing, or where they redirect; all in time."""

import contextlib
import ipaddress
import socket
import ssl
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import httpcore2
import pytest

from agent.adapters.http.client import HttpClient, public_client
from agent.adapters.http.deadline import Deadline
from agent.adapters.http.failure import Failure, HttpFailed
from agent.adapters.http.public_address import is_public
from agent.adapters.http.target import PlainHttp, TargetRefused
from agent.adapters.http.wire import Limits, translated
from agent.errors import DependencyFailed, PolicyRefused
from tests.loopback import Loopback

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
    both = (ipaddress.ip_address("8.8.8.8"), ipaddress.ip_address(text))
    client = HttpClient(timeout_s=5, allowed=is_public, resolve=lambda host, port: both)
    with pytest.raises(PolicyRefused, match="not public"):
        client.send("POST", "https://hooks.example.com/x", headers={}, body=b"")


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
        public_client().send("POST", url, headers={}, body=b"")


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
        HttpClient(timeout_s=5, plain_http=PlainHttp.NEVER, resolve=looked_up).request("GET", url)


def test_a_name_without_an_address_is_a_failure_that_may_pass():
    with pytest.raises(HttpFailed) as caught:
        public_client().request("GET", "https://no-such-host.invalid/")
    assert (caught.value.reason, caught.value.sent, caught.value.redeliver) == (Failure.UNREACHABLE, False, True)
    with pytest.raises(TargetRefused):
        HttpClient(timeout_s=5, allowed=is_public, resolve=lambda *_: ()).request("GET", "https://example.com/")


@contextlib.contextmanager
def receiving(*answers):
    server, answers = SimpleNamespace(got=[]), list(answers)

    def answer(request):
        server.got.append((request.path, request.body, dict(request.headers)))
        status, headers = answers.pop(0) if answers else (200, {})
        return status, b"", headers

    with Loopback(answer, methods=["POST"]) as running:
        server.server_port = running.port
        yield server


def here(asked, *, public=("127.0.0.1",)):
    """A client that takes some addresses for public, and notes what was looked up."""

    def resolve(host, port):
        asked.append(host)
        return (ipaddress.ip_address("10.0.0.1" if host.startswith("inside") else "127.0.0.1"),)

    return HttpClient(
        timeout_s=5, redirects=3, plain_http=PlainHttp.ALWAYS, allowed=lambda a: str(a) in public, resolve=resolve
    )


def test_a_host_is_looked_up_once_and_that_address_is_reached():
    """A name that changes between look and use (DNS rebinding) finds nothing to change."""
    asked = []
    with receiving() as server:
        url = f"http://hooks.example.com:{server.server_port}/a?b=c"
        assert here(asked).send("POST", url, headers={"x": "y"}, body=b"body") == 200
    assert asked == ["hooks.example.com"]
    [(path, body, headers)] = server.got
    assert (path, body, headers["x"]) == ("/a?b=c", b"body", "y")
    assert headers["Host"] == f"hooks.example.com:{server.server_port}"


def test_a_redirect_is_looked_at_afresh():
    with receiving((307, {"Location": "/second"}), (200, {})) as server:
        asked = []
        here(asked).send("POST", f"http://hooks.example.com:{server.server_port}/first", headers={}, body=b"x")
    assert [path for path, _, _ in server.got] == ["/first", "/second"]
    assert asked == ["hooks.example.com"] * 2


@pytest.mark.parametrize(
    "target",
    [
        "http://inside.example.com/x",
        "file:///etc/passwd",
        "http://u:p@hooks.example.com/",
    ],
)
def test_a_redirect_to_the_inside_is_refused(target):
    with receiving((307, {"Location": target})) as server, pytest.raises(PolicyRefused):
        here([]).send("POST", f"http://hooks.example.com:{server.server_port}/", headers={}, body=b"x")
    assert len(server.got) == 1


def test_a_redirect_that_would_lose_the_body_or_never_ends_is_refused():
    with receiving((302, {"Location": "/b"})) as server, pytest.raises(PolicyRefused, match="lose the body"):
        here([]).send("POST", f"http://hooks.example.com:{server.server_port}/", headers={}, body=b"x")
    with receiving(*[(308, {"Location": "/b"})] * 9) as server, pytest.raises(PolicyRefused, match="more than 3"):
        here([]).send("POST", f"http://hooks.example.com:{server.server_port}/", headers={}, body=b"x")


def test_nobody_there_is_a_failure_that_may_pass():
    with receiving() as server:
        port = server.server_port
    with pytest.raises(DependencyFailed):
        here([]).send("POST", f"http://hooks.example.com:{port}/", headers={}, body=b"x")


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
        (b"HTTP/1.1 200 OK\r\nX-Long: ", None),
        (b"HTTP/1.1 2", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", 200),
    ],
    ids=["a header that never ends", "a status that never ends", "a body that never ends"],
)
def test_who_answers_a_byte_at_a_time_holds_nobody_up(first, status):
    """Each byte is in time; it is the whole head of the answer that must be. Half a head is no answer."""
    client = HttpClient(timeout_s=0.3)
    with dripping(first) as port:
        began = time.monotonic()
        with nullcontext() if status else pytest.raises(DependencyFailed):
            assert client.send("POST", f"http://127.0.0.1:{port}/", headers={}, body=b"x") == status
        assert time.monotonic() - began < 3


def test_a_secret_in_the_path_is_not_shown():
    with pytest.raises(PolicyRefused) as caught:
        public_client().send("POST", "http://hooks.example.com/services/T0/s3cret", headers={}, body=b"")
    assert "s3cret" not in str(caught.value)


def test_an_answer_that_drips_or_never_ends_is_given_up_in_time():
    """Headers in time are not enough: the deadline is for the last byte too."""
    with dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n") as port:
        began = time.monotonic()
        with pytest.raises(HttpFailed, match=r"took more than 0\.3 s") as caught:
            HttpClient(timeout_s=0.3).request("GET", f"http://127.0.0.1:{port}/")
        assert time.monotonic() - began < 3
    assert (caught.value.reason, caught.value.sent) == (Failure.TIMED_OUT, True)


def test_more_than_the_limit_is_not_received(site):
    site.answers = [(200, {}, b"x" * 70_000)] * 2
    assert len(HttpClient(timeout_s=5, limit_bytes=71_000).request("GET", site.url).body) == 70_000
    with pytest.raises(HttpFailed) as caught:
        HttpClient(timeout_s=5, limit_bytes=70_000).request("GET", site.url)
    assert caught.value.reason is Failure.TOO_LONG


def test_the_beginning_of_an_answer_can_be_read_alone(site):
    site.answers = [(200, {}, b"abc" * 100_000)]
    with HttpClient(timeout_s=5).stream("GET", site.url) as response:
        assert response.read(5) == b"abcab"


def test_a_resolver_that_hangs_holds_nobody_up():
    over = threading.Event()
    client = HttpClient(timeout_s=0.2, resolve=lambda *_: over.wait(20) or ())
    began = time.monotonic()
    with pytest.raises(HttpFailed) as caught:
        client.request("GET", "https://hooks.example.com/")
    over.set()
    assert time.monotonic() - began < 3
    assert (caught.value.reason, caught.value.sent) == (Failure.TIMED_OUT, False)


def test_a_host_with_a_dead_address_is_reached_by_its_next_one(site):
    """The next one of those that were looked up at first; nothing is looked up again."""
    found = tuple(map(ipaddress.ip_address, ("127.0.0.2", "127.0.0.1")))
    client = HttpClient(timeout_s=5, plain_http=PlainHttp.ALWAYS, resolve=lambda *_: found)
    assert client.request("GET", f"http://two.example.com:{site.port}/").status == 200


def test_an_answer_that_is_compressed_unasked_is_none(site):
    site.answers = [(200, {"Content-Encoding": "gzip"}, b"xx")]
    with pytest.raises(HttpFailed, match="compressed") as caught:
        HttpClient(timeout_s=5).request("GET", site.url)
    assert caught.value.sent
    assert site.seen[0]["accept-encoding"] == "identity"


def test_connections_are_kept_only_where_that_is_asked_for(site):
    with contextlib.closing(HttpClient(timeout_s=5, keep_alive=True)) as keeping:
        for _ in range(3):
            keeping.request("GET", site.url)
    assert len(set(site.peers)) == 1
    once = HttpClient(timeout_s=5)
    for _ in range(3):
        once.request("GET", site.url)
    assert len(set(site.peers)) == 4


def test_a_kept_connection_has_the_deadline_and_the_limit_of_each_call(site):
    site.answers = [(200, {}, b"x" * 40_000)] * 3
    with contextlib.closing(HttpClient(timeout_s=5, limit_bytes=50_000, keep_alive=True)) as client:
        assert [len(client.request("GET", site.url).body) for _ in range(3)] == [40_000] * 3
    assert len(set(site.peers)) == 1


def test_a_secret_that_is_no_header_is_not_repeated(site):
    with pytest.raises(HttpFailed) as caught:
        HttpClient(timeout_s=5).request("GET", site.url, headers={"Authorization": "Bearer s3cr3t\r\nX: y"})
    assert "s3cr3t" not in str(caught.value)
    assert (caught.value.sent, site.seen) == (False, [])


def test_https_goes_through_the_proxy_of_the_environment_and_public_targets_never_do(site, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://ada:pw@127.0.0.1:{site.port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(HttpFailed, match="405") as caught:
        HttpClient(timeout_s=5).request("GET", "https://hooks.example.com/")
    assert not caught.value.sent
    assert site.tunnels == [("hooks.example.com:443", "Basic YWRhOnB3")]
    with pytest.raises(TargetRefused):
        HttpClient(timeout_s=1, allowed=lambda _: True, resolve=lambda *_: ()).request("GET", "https://x.example.com/")
    monkeypatch.setenv("NO_PROXY", "example.com")
    with pytest.raises(HttpFailed):
        HttpClient(timeout_s=1, resolve=lambda *_: ()).request("GET", "https://hooks.example.com/")
    assert len(site.tunnels) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_what_goes_to_this_machine_never_goes_through_a_proxy(site, monkeypatch, host):
    """Whatever the environment says; a proxy would reach its own machine, not this one."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{site.port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(HttpFailed):
        HttpClient(timeout_s=2).request("GET", f"https://{host}:9/")
    assert site.tunnels == []
    assert HttpClient(timeout_s=5).request("GET", site.url).status == 200
    assert site.tunnels == []


def test_a_certificate_is_checked_against_the_name_not_the_address(tls_site):
    """The pinned address is 127.0.0.1; the certificate names hooks.example.com."""
    client = HttpClient(timeout_s=5, allowed=lambda _: True, resolve=tls_site.resolve, tls=tls_site.trust)
    assert client.request("GET", f"https://hooks.example.com:{tls_site.port}/").body == b"ok"
    with pytest.raises(HttpFailed, match=r"(?i)certificate") as caught:
        client.request("GET", f"https://other.example.com:{tls_site.port}/")
    assert (caught.value.reason, caught.value.sent) == (Failure.UNREACHABLE, False)
    with pytest.raises(HttpFailed, match=r"(?i)certificate"):
        HttpClient(timeout_s=5, resolve=tls_site.resolve).request("GET", f"https://hooks.example.com:{tls_site.port}/")


def test_https_never_leads_to_http(tls_site):
    client = HttpClient(
        timeout_s=5, redirects=3, plain_http=PlainHttp.ALWAYS, resolve=tls_site.resolve, tls=tls_site.trust
    )
    tls_site.answers = [(302, {"Location": "http://hooks.example.com/x"}, b"")]
    with pytest.raises(TargetRefused, match="want https"):
        client.request("GET", f"https://hooks.example.com:{tls_site.port}/")


def test_no_error_of_the_library_is_unmapped():
    """Whatever it raises on the way becomes one error of ours; a new one of the library is noticed here."""
    names = [n for n in httpcore2.__all__ if isinstance(getattr(httpcore2, n), type)]
    errors = [getattr(httpcore2, n) for n in names if issubclass(getattr(httpcore2, n), Exception)]
    assert len(errors) > 10
    for error in (*errors, TimeoutError, ConnectionResetError, ssl.SSLError):
        with pytest.raises(HttpFailed), translated("x", Limits(Deadline(1), 1)):
            raise error("boom")
