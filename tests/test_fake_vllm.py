"""The server that stands in for vLLM says nothing that vLLM would not say: watchers read its lines."""

import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.waiting import until

FAKE = Path(__file__).with_name("fake_vllm.py")
ASKED = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 400\r\n\r\n{"
RESET = struct.pack("ii", 1, 0)  # closed with a reset, as the kernel closes what a killed client has not read

LISTENS, TAKEN = "0A 00000000", "01 00000000"  # a listener, and a client of whom all was read
OF_THE_SERVER = 2  # threads, where none is left of a request


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
def test_a_client_that_goes_away_in_the_middle_of_a_request_leaves_no_line(reset: bool) -> None:
    """Uvicorn prints nothing of it; a traceback would be taken for a failure of the server."""
    port = free_port()
    command = [sys.executable, str(FAKE), "serve", "/models/gemma", "--port", str(port)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server,
        _killed(server),
    ):
        up = [server.stdout.readline(), server.stdout.readline()]
        assert "startup complete" in up[1]
        until(lambda: LISTENS in _states(port))
        for length in (10, len(ASKED)):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(ASKED[:length])
                until(lambda: TAKEN in _states(port))
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            until(lambda: len(list(Path(f"/proc/{server.pid}/task").iterdir())) == OF_THE_SERVER)
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/health").status == 200
        server.terminate()
        assert server.stdout.read() == ""


@contextmanager
def _killed(server: subprocess.Popen[str]) -> Iterator[None]:
    """Whatever happens, nobody waits for a server that goes on."""
    try:
        yield
    finally:
        server.kill()


def _states(port: int) -> set[str]:
    """Return the state and the bytes that wait to be read of each socket at a port of this machine, by Linux."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"{row[3]} {row[4].partition(':')[2]}" for row in rows if row[1].endswith(f":{port:04X}")}
