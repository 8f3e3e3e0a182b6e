"""Streams are unpacked and recoded, and their lines are bounded."""

import gzip
import io

import pytest

from agent.entrypoints.cli.byte_stream import lines_of, plain_bytes
from agent.errors import InputRejected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_every_packing_gives_the_same_bytes(encoding, packed):
    """A byte-order mark says the encoding; a character beyond 16 bits is one character."""
    words = "ERROR 😀 café\n" * 9000
    data = words.encode(encoding)
    assert plain_bytes(io.BytesIO(gzip.compress(data) if packed else data)).read() == words.encode()


def test_the_position_counts_what_was_read():
    """Progress is told from it."""
    stream = plain_bytes(io.BytesIO(b"x" * 200_000))
    stream.read(70_000)
    assert stream.tell() == 70_000


def test_broken_gzip_is_refused_and_not_an_error_of_zlib():
    """Damage in the middle, or an early end."""
    packed = bytearray(gzip.compress(bytes(range(256)) * 1000))
    for broken in (bytes(packed[:-20]), bytes(packed[:40]) + b"\xff" * 20 + bytes(packed[60:])):
        with pytest.raises(InputRejected, match="gzip data are broken"):
            plain_bytes(io.BytesIO(broken)).read()


def test_a_line_too_long_is_skipped_under_its_number_or_cut():
    """The lines after it keep their numbers."""
    data = b"a\r\n" + b"x" * 25 + b"\n" + b"b"
    assert list(lines_of(io.BufferedReader(io.BytesIO(data)), 10)) == [(1, b"a\n"), (2, None), (3, b"b")]
    pieces = list(lines_of(io.BufferedReader(io.BytesIO(data)), 10, cut=True))
    assert b"".join(piece for _, piece in pieces) == b"a\n" + b"x" * 25 + b"\nb"
    assert [number for number, _ in pieces] == [1, 2, 2, 2, 3]


def test_a_line_of_exactly_the_limit_is_a_line():
    """With its end it fits; without one more byte it is whole at the end of the stream."""
    assert list(lines_of(io.BytesIO(b"12345678\n12345678\n"), 9)) == [(1, b"12345678\n"), (2, b"12345678\n")]
