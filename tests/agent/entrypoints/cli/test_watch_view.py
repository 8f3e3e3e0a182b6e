"""What a server prints reaches the terminal line by line, and a slow reader byte for byte."""

import os
import threading

import pytest

from agent.entrypoints.cli.watch_view import LINE_READ, LiveView, PlainView


@pytest.fixture
def live(capsys):
    view = LiveView()
    yield view
    view.close()


def test_a_line_is_printed_once_it_has_ended(live, capsys):
    """What stands without an end of line would be erased with the line of state."""
    live.output(b"loading")
    assert "loading" not in capsys.readouterr().out
    live.output(b" weights\nready")
    assert capsys.readouterr().out == "loading weights\n"
    live.close()
    assert "ready\n" in capsys.readouterr().out


def test_a_letter_and_an_end_of_line_may_come_in_two_pieces(live, capsys):
    for piece in (b"gr\xc3", b"\xbc\xc3\x9fe\r", b"\n50 %\r", b"100 %\r\nlast\xc3"):
        live.output(piece)
    assert capsys.readouterr().out == "gr\u00fc\u00dfe\n50 %\n100 %\n"
    live.close()
    assert "last\ufffd\n" in capsys.readouterr().out


def test_a_line_without_an_end_is_not_kept_for_ever(live, capsys):
    live.output(b"x" * (LINE_READ + 1))
    assert capsys.readouterr().out.count("x") == LINE_READ + 1


def test_a_pipe_that_does_not_block_is_waited_for():
    """Such as one that a parent process set so: nothing is lost, and the passing on does not end."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    data = bytes(range(256)) * 4096
    view = PlainView(output=theirs)
    got = []

    def read() -> None:
        while part := os.read(ours, 65_536):
            got.append(part)

    reader = threading.Thread(target=read)
    filled = os.write(theirs, b"." * 2**20)  # all that it holds before anybody reads
    reader.start()
    view.output(data)
    os.close(theirs)
    reader.join(30)
    os.close(ours)
    assert b"".join(got)[filled:] == data
