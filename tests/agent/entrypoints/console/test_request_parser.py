"""Requests in pieces: whole at every cut, and whatever is wrong has a status of its own."""

import contextlib
import random

import pytest

from agent.entrypoints.console.request_parser import HEAD_LIMIT, RequestParser, RequestRefused

PLAIN = (
    b"POST /plans/p-1?x=%41 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 11\r\nX-A: 1\r\nX-A: 2\r\n\r\nhello=world"
)
CHUNKED = (
    b"POST http://127.0.0.1/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"5;name=value\r\nhello\r\n6\r\n=world\r\n0\r\nTrailer: x\r\n\r\n"
)


def parsed(data, *, step=None, limit=100):
    request = RequestParser(limit=limit)
    for at in range(0, len(data), step or len(data)):
        request.feed(data[at : at + (step or len(data))])
    return request


@pytest.mark.parametrize("data", [PLAIN, CHUNKED], ids=["length", "chunks"])
@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, None])
def test_a_request_is_whole_however_it_was_cut(data, step):
    request = parsed(data, step=step)
    assert request.complete
    assert bytes(request.body) == b"hello=world"
    assert not parsed(data[:-1], step=step).complete


def test_an_application_is_told_what_was_asked():
    environ = parsed(PLAIN).environ()
    assert environ["PATH_INFO"] == "/plans/p-1"
    assert environ["QUERY_STRING"] == "x=%41"
    assert environ["HTTP_X_A"] == "1,2"
    assert environ["CONTENT_LENGTH"] == "11"
    assert parsed(CHUNKED).environ()["PATH_INFO"] == "/a"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: 1\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA : 1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: 1\nB: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1,1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000, 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: 1\r\n" * 2000, 400),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * HEAD_LIMIT, 431),
        (b"GET / HTTP/1.1\r\n" + b"A: 1\r\n" * 200 + b"\r\n", 431),
    ],
)
def test_what_is_wrong_is_refused_with_a_status(data, status):
    with pytest.raises(RequestRefused) as refused:
        parsed(data)
    assert refused.value.status == status


def test_no_mutant_of_a_request_raises_anything_else():
    """2,000 mutants: whole, unfinished, or refused; nothing else is raised."""
    chosen = random.Random("2026-11-22")
    for _ in range(2_000):
        data = bytearray(chosen.choice([PLAIN, CHUNKED]))
        for _ in range(chosen.randint(1, 6)):
            at = chosen.randrange(len(data))
            data[at : at + chosen.randint(0, 3)] = chosen.randbytes(chosen.randint(0, 3))
        with contextlib.suppress(RequestRefused):
            request = parsed(bytes(data), step=chosen.choice([1, 5, None]))
            if request.complete:
                request.environ()
