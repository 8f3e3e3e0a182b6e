"""The watcher at a narrow terminal: a question, an answer, and Ctrl-C that asks what to stop."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.incident.phase import Phase
from tests.journeys import watched as module

pytestmark = pytest.mark.watched

HERE = Path(__file__).resolve().parent
COLUMNS = 30


class Terminal:
    """A watcher with a terminal of its own, `COLUMNS` wide."""

    def __init__(self, own, module, *flags: str, before: tuple[str, ...] = ()) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        own.environ |= {"TERM": "xterm"}
        self.process = own.watcher = subprocess.Popen(
            [str(module.AGENT), "watch", "--name", module.NAME, *before, "--", *own.words(*flags)],
            stdin=theirs, stdout=theirs, stderr=theirs, env=own.environ, cwd=own.folder, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - a terminal must be taken there
        )  # fmt: skip
        os.close(theirs)
        self.seen = b""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self.ours, 65536)
            except OSError:
                return
            self.seen += part

    @property
    def text(self) -> str:
        """What was written, without escapes."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen.decode("utf-8", "replace"))

    def type(self, words: bytes) -> None:
        """Type something."""
        os.write(self.ours, words)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator:
    own = module.Watched(tmp_path)
    made = []

    def make(*flags: str, before: tuple[str, ...] = ()):
        made.append(Terminal(own, module, *flags, before=before))
        return own, made[-1]

    yield make
    own.close()
    for one in made:
        os.close(one.ours)


@pytest.mark.journey
def test_yes_at_the_prompt_applies_the_plan(terminal) -> None:
    """The plan stands there with its difference, one letter answers it, and the server comes up."""
    own, screen = terminal("--max-model-len", "131072")
    own.until(lambda: "[y]es [n]o [l]ater" in screen.text, "the question")
    assert "131072 -> 32640" in re.sub(r"\s+", " ", screen.text)
    screen.type(b"what?\n")
    own.until(lambda: screen.text.count("[l]ater") == 2, "the question again")
    screen.type(b"y\n")
    done = own.until(own.ended, "an end")
    assert done.phase is Phase.RESOLVED
    assert done.decision.channel == "command_line"
    own.until(lambda: "gemma: serving" in screen.text, "the state line")


def test_no_at_the_prompt_changes_nothing(terminal) -> None:
    """A rejection stands as one, and the server stays down."""
    own, screen = terminal("--max-model-len", "131072")
    own.until(lambda: "[l]ater" in screen.text, "the question")
    screen.type(b"n\n")
    own.until(lambda: "rejected plan" in re.sub(r"\s+", " ", screen.text), "the rejection")
    assert "it was not applied" in re.sub(r"\s+", " ", screen.text)
    assert len(own.state().starts) == 1


@pytest.mark.parametrize(("answer", "left"), [(b"w\n", 2), (b"s\n", 0)])
def test_ctrl_c_asks_what_to_stop(terminal, answer: bytes, left: int) -> None:
    """Only the watching, or the server as well."""
    own, screen = terminal("--max-model-len", "2048")
    own.until(own.serving, "a serving server")
    own.until(lambda: "gemma: serving" in screen.text, "the state line")
    screen.type(b"\x03")
    own.until(lambda: "[g]o on?" in screen.text, "the question")
    screen.type(answer)
    assert screen.process.wait(60) == 0
    assert len(own.processes()) == left


def test_a_question_that_became_moot_is_taken_back(terminal) -> None:
    """Somebody else said yes meanwhile: the prompt goes away and the view goes on."""
    own, screen = terminal("--max-model-len", "131072")
    own.until(lambda: "[l]ater" in screen.text, "the question")
    own.approve(own.asked().plan.id)
    assert own.until(own.ended, "an end").phase is Phase.RESOLVED
    own.until(lambda: "gemma: serving" in screen.text, "the state line")
    os.kill(screen.process.pid, signal.SIGTERM)
    assert screen.process.wait(60) == 0


def test_a_terminal_that_is_closed_ends_the_watching_in_order_and_never_the_server(terminal) -> None:
    """The kernel sends SIGHUP and every write fails; the server serves on, and the next watcher takes it over."""
    own, screen = terminal("--max-model-len", "2048")
    own.until(own.serving, "a serving server")
    own.until(lambda: "serving" in screen.text, "the view")
    os.close(screen.ours)
    screen.ours = os.open(os.devnull, os.O_RDWR)
    assert own.watcher.wait(60) == 0
    assert len(own.processes()) == 2
    own.watch("--max-model-len", "2048")
    own.until(lambda: "took over" in own.said.read_text(), "the successor")


def test_a_terminal_that_is_closed_stops_the_server_too_where_that_is_wanted(terminal) -> None:
    """Nobody reads what is said of it any more, and the server is stopped all the same."""
    own, screen = terminal("--max-model-len", "2048", before=("--on-exit", "stop"))
    own.until(own.serving, "a serving server")
    own.until(lambda: "serving" in screen.text, "the view")
    os.close(screen.ours)
    screen.ours = os.open(os.devnull, os.O_RDWR)
    assert own.watcher.wait(60) == 0
    assert own.processes() == ()
