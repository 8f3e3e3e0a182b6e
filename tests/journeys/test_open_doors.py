"""S17: what anybody may post to costs little, on the real web server of the functions and over real sockets."""

import contextlib
import hashlib
import hmac
import socket
import time
from pathlib import Path

import pytest

from tests.journeys import deployed

SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
THREADS = 4


@pytest.fixture
def decide(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = deployed.clean_environ(
        STORE=f"sqlite:{tmp_path / 'state'}", SLACK_SIGNING_SECRET=SECRET.decode(), THREADS=str(THREADS)
    )
    function = deployed.Function("decide", port, environ, tmp_path / "decide.log")
    try:
        function.answers()
        function.port = port
        yield function
    finally:
        function.stop()


def rss_mib(pid):
    """Return the most resident memory that a process and its children have had, together."""
    pids, total = [pid], 0
    while pids:
        one = pids.pop()
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{one}/status").read_text().splitlines():
                if line.startswith("VmHWM"):
                    total += int(line.split()[1])
            pids += [int(n) for n in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
    return total / 1024


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def status_of(sock):
    with contextlib.suppress(ConnectionError):
        said = sock.recv(4096)
        return int(said.split()[1]) if said else 0
    return 0


def press(function):
    """Post a press that Slack signed; return its status (its plan does not exist) and how long it took."""
    body = b"payload=%7B%7D"
    stamp = str(int(time.time()))
    mac = hmac.new(SECRET, b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}
    began = time.monotonic()
    status, _ = function.post(body, path="/slack/actions", headers=headers)
    return status, time.monotonic() - began


@pytest.mark.timeout(120)
@pytest.mark.parametrize("form", ["length", "chunks"])
def test_large_bodies_are_refused_without_being_read(decide, form):
    """20 unauthenticated posts of 32 MiB: at most 64 MiB more, and the next press is answered."""
    press(decide)
    before = rss_mib(decide.process.pid)
    piece = b"x" * 1_048_576
    for _ in range(20):
        with connected(decide.port) as sock:
            head = b"POST /slack/actions HTTP/1.1\r\nHost: h\r\n"
            with contextlib.suppress(ConnectionError):
                if form == "length":
                    sock.sendall(head + b"Content-Length: 33554432\r\n\r\n")
                else:
                    sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
                for _ in range(32):
                    sock.sendall(piece if form == "length" else b"100000\r\n" + piece + b"\r\n")
            assert status_of(sock) in {0, 413}
    assert rss_mib(decide.process.pid) - before <= 64
    status, took_s = press(decide)
    assert status < 500
    assert took_s < 5


@pytest.mark.timeout(60)
def test_slow_bodies_on_every_thread_keep_no_press_out(decide):
    """Twice as many slow clients as threads, each sending a byte now and then; a signed press within 5 s."""
    press(decide)
    with contextlib.ExitStack() as held:
        slow = [held.enter_context(connected(decide.port)) for _ in range(2 * THREADS)]
        for sock in slow:
            sock.sendall(b"POST /slack/actions HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\npay")
        status, took_s = press(decide)
        assert status < 500
        assert took_s < 5
        assert {status_of(sock) for sock in slow} <= {0, 408}


@pytest.mark.timeout(60)
def test_a_wrong_chunk_is_the_client_s_mistake(decide):
    """Each of these, sent to the same server."""
    bodies = (b"zz\r\nhello\r\n0\r\n\r\n", b"-5\r\nhello\r\n", b"5\r\nhelloworld\r\n0\r\n\r\n", b"5;x\r\nhel")
    for body in bodies:
        with connected(decide.port) as sock:
            sock.sendall(b"POST /slack/actions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
            sock.shutdown(socket.SHUT_WR)
            assert 400 <= status_of(sock) < 500, body
    assert "Traceback" not in decide.log.read_text()
