"""The watcher as people run it: the server's output passes through, its end is ours, and it can be stopped."""

import json
import os
import signal
import subprocess
import sys

import pytest

from agent.core.incident.phase import Phase
from tests.journeys import watched as watched_module
from tests.journeys.watched import AGENT, NAME, Watched

pytestmark = pytest.mark.watched

PRINTED = bytes(range(256)) + b"\x1b[31mred\x1b[0m\r\nlast words"
PROGRAM = f"import os; os.write(1, {PRINTED[:200]!r}); os.write(2, {PRINTED[200:]!r}); raise SystemExit(7)"


@pytest.fixture
def own(tmp_path):
    made = Watched(tmp_path)
    yield made
    made.close()


def once(own, *flags: str, words=None, name: str = NAME) -> subprocess.CompletedProcess[bytes]:
    words = words or [sys.executable, "-c", PROGRAM, "serve", "/models/gemma"]
    command = [str(AGENT), "watch", "--name", name, "--once", *flags, "--", *words]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=own.environ, cwd=own.folder, check=False
    )


@pytest.mark.journey
def test_every_byte_passes_through_and_the_exit_code_is_the_servers(own) -> None:
    """Output and error stream share one log, so both come out in the order they were written."""
    done = once(own)
    assert done.stdout == PRINTED
    assert done.returncode == 7
    assert b"exit code 7" in done.stderr
    assert b"last words" not in done.stderr.splitlines()[-1]


@pytest.mark.journey
def test_json_stands_alone_on_standard_output(own) -> None:
    done = once(own, "--json")
    rows = [json.loads(row) for row in done.stdout.splitlines()]
    assert {"state", "step", "end"} <= {row["event"] for row in rows}
    assert rows[-1]["exit_code"] == done.returncode == 7
    assert PRINTED in done.stderr


def test_quiet_server_passes_nothing_on(own) -> None:
    done = once(own, "--quiet-server")
    assert done.stdout == b""
    assert done.returncode == 7


def test_a_script_that_does_not_name_its_model_is_watched_with_the_models_name(own) -> None:
    script = own.folder / "serve.sh"
    script.write_text("#!/bin/sh\necho hello\nkill -TERM $$\n")
    script.chmod(0o755)
    refused = once(own, words=[str(script)])
    assert refused.returncode == 2
    assert b"Hint:" in refused.stderr
    done = once(own, "--model", "me/model", words=[str(script)])
    assert done.stdout == b"hello\n"
    assert done.returncode == 128 + signal.SIGTERM


def test_a_server_waits_for_nobody_who_does_not_read(own) -> None:
    """R17, R22: the pipe is full, and the server still ends in time and its end is told."""
    program = "import os\nfor _ in range(40): os.write(1, b'x' * 99_999 + b'\\n')\nraise SystemExit(3)"
    own.words = lambda: [sys.executable, "-c", program, "serve", "/models/gemma"]
    with own.said.open("ab") as said:
        own.watcher = subprocess.Popen(
            [str(AGENT), "watch", "--name", NAME, "--", *own.words()], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=said, env=own.environ, cwd=own.folder,
        )  # fmt: skip
    state = own.until(lambda: (p := own.state()) and p.newest and p.newest.ended_at and p, "the end")
    assert state.newest.exit_code == 3
    own.until(own.incidents, "its incident")
    assert len(own.watcher.stdout.read(4_000_000)) == 4_000_000
    own.watcher.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_stops_the_server_too_where_that_is_wanted(own, number) -> None:
    """Ctrl-C is such a signal where nobody can be asked."""
    own.watch("--max-model-len", "2048", before=("--on-exit", "stop"))
    own.until(own.serving, "a serving server")
    assert own.kill_watcher(number) == 0
    said = own.said.read_text()
    assert f"{number.name}: the server is stopped too" in said
    assert said.splitlines()[-1] == "the server has stopped"
    assert own.processes() == ()
    assert own.incidents() == ()


def test_a_server_is_stopped_by_its_name_from_anywhere(own) -> None:
    own.watch("--max-model-len", "2048")
    own.until(own.serving, "a serving server")

    def stop(name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(AGENT), "watch", "--stop", name], capture_output=True, text=True, timeout=60, env=own.environ,
            cwd=own.folder, check=False,
        )  # fmt: skip

    missed = stop("gema")
    assert (missed.returncode, "did you mean 'gemma'?" in missed.stderr) == (2, True)
    done = stop(watched_module.NAME)
    assert (done.returncode, done.stdout) == (0, "gemma: the server has stopped\n")
    assert own.processes() == ()
    assert own.incidents() == ()


def test_once_waits_for_a_change_that_needs_nobody(own) -> None:
    """The server has ended and its cause is known, and still the run goes on: policy has it started again."""
    rules = '[[rules]]\nservices = ["gemma"]\nkinds = ["restart"]\nmode = "automatic"\n'
    own.policy.write_text(own.policy.read_text() + rules)
    own.watch("--max-model-len", "2048", before=("--auto", "--once"))
    own.until(own.serving, "a serving server")
    os.kill(own.server(), signal.SIGKILL)
    done = own.until(own.ended, "an end")
    assert (done.phase, done.decision.who) == (Phase.RESOLVED, "policy")
    assert own.watcher.poll() is None
