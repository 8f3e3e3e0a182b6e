"""The console's own server under slow, large, wrong and many clients, over real sockets."""

import contextlib
import resource
import socket
import subprocess
import sys
import threading
import time

import pytest

from agent.entrypoints.console.serve import claim
from agent.entrypoints.console.server import ConsoleServer

POST = b"POST /decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nyes"
LIMIT = 1_000


def application(environ, start):
    body = environ["wsgi.input"].read()
    if environ["PATH_INFO"] == "/hangs":
        GATE.wait(20)
    if environ["PATH_INFO"] == "/raises":
        raise RuntimeError("broken")
    start("200 OK", [("Content-Type", "text/plain")])
    return [environ["REQUEST_METHOD"].encode(), b" ", body]


GATE = threading.Event()


@contextlib.contextmanager
def running(**options):
    with claim(0) as held:
        server = ConsoleServer(application, listener=held.dup(), limit=LIMIT, **options)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        GATE.set()
        server.shutdown()
        GATE.clear()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def asked(port, data=POST):
    with connected(port) as sock:
        sock.sendall(data)
        said = b""
        while piece := sock.recv(65_536):
            said += piece
    return said


def test_a_request_is_answered_and_the_connection_closed():
    with running() as port:
        said = asked(port)
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Connection: close" in said
    assert said.endswith(b"POST yes")


def test_an_application_that_raises_is_a_500_without_a_word_of_why():
    with running() as port:
        said = asked(port, b"GET /raises HTTP/1.1\r\n\r\n")
    assert b" 500 " in said.split(b"\r\n")[0]
    assert b"broken" not in said
    assert b"Traceback" not in said


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 33554432\r\n\r\n" + b"x" * 1000, 413),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
)
def test_a_wrong_or_large_request_is_refused_before_its_end(data, status):
    with running() as port:
        assert asked(port, data).startswith(b"HTTP/1.1 %d " % status)


def test_a_client_that_waits_for_leave_to_send_gets_it_once():
    with running() as port, connected(port) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"yes")
        assert sock.recv(10_000).startswith(b"HTTP/1.1 200")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "slow",
    [b"POST /decide HT", b"POST /decide HTTP/1.1\r\nContent-Length: 900\r\n\r\nslow"],
    ids=["heads", "bodies"],
)
def test_slow_clients_on_every_thread_keep_no_decision_out(slow):
    """S17: 200 slow clients, many times the threads; a press is answered within 5 s."""
    with running() as port, contextlib.ExitStack() as held:
        for _ in range(200):
            held.enter_context(connected(port)).sendall(slow)
        began = time.monotonic()
        assert b"POST yes" in asked(port)
        assert time.monotonic() - began < 5


@pytest.mark.timeout(60)
def test_pages_that_hang_keep_no_decision_out():
    """Readers on all threads and in the whole queue; posts have threads of their own."""
    with running() as port, contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(connected(port)).sendall(b"GET /hangs HTTP/1.1\r\n\r\n")
        began = time.monotonic()
        assert b"POST yes" in asked(port)
        assert time.monotonic() - began < 5


@pytest.mark.timeout(90)
def test_a_thousand_clients_at_once_reset_no_press():
    """1,000 connections that send nothing, and presses among them: each is answered, none is reset."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4_000:
        pytest.skip("1,000 clients and their server need 4,000 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4_000), hard))
    try:
        with running() as port, contextlib.ExitStack() as held:
            for number in range(1_000):
                held.enter_context(connected(port))
                if number % 100 == 99:
                    assert b"POST yes" in asked(port)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.timeout(60)
def test_more_clients_than_places_drop_the_oldest_unfinished_one():
    with running(connections=20) as port, contextlib.ExitStack() as held:
        slow = [held.enter_context(connected(port)) for _ in range(60)]
        assert b"POST yes" in asked(port)
        assert slow[0].recv(10) == b""


FEW_FILES = """
import os, resource, sys, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
from agent.entrypoints.console.serve import claim
from agent.entrypoints.console.server import ConsoleServer

def application(environ, start):
    start("200 OK", [])
    return [environ["REQUEST_METHOD"].encode(), b" ", environ["wsgi.input"].read()]

with claim(0) as held:
    server = ConsoleServer(application, listener=held.dup(), limit=1000)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
before = sum(os.times()[:2])
sys.stdin.readline()
print(sum(os.times()[:2]) - before, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_without_file_descriptors_it_sheds_load_and_does_not_spin():
    """At 32 open files: presses are answered between 100 clients that hold on, on less than half a core."""
    command = [sys.executable, "-c", FEW_FILES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline())
            with contextlib.ExitStack() as held:
                for _ in range(100):
                    held.enter_context(connected(port))
                began, answered = time.monotonic(), 0
                while time.monotonic() - began < 2:
                    answered += b"POST yes" in asked(port)
                    threading.Event().wait(0.2)
                used_s = float(server.communicate("\n")[0])
        finally:
            server.kill()
    assert answered >= 4
    assert used_s < 1
