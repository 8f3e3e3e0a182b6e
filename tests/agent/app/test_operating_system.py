"""What runs where: a sentence wherever something does not, and the commands that compute need nothing of Unix."""

import getpass
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from agent.app import build_app
from agent.app.operating_system import user_name
from agent.entrypoints.cli.main import main
from agent.errors import InputRejected
from agent.settings import read_settings

ROOT = Path(__file__).parents[3]
EVENTS = "examples/gemma4-26b-l4-startup-probe/events.jsonl"
WITHOUT_UNIX = """
import os, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "getuid", "killpg", "pidfd_open"):
    delattr(os, name)
from agent.entrypoints.cli.main import main
codes = [main(words.split()) for words in sys.argv[1:]]
sys.exit(0 if set(codes) <= {0, 1} else f"{codes}")
"""


@pytest.mark.parametrize(
    ("system", "words", "says"),
    [
        ("Darwin", ("watch", "--", "vllm", "serve", "m"), "supervised on Linux only, and this is macOS. Hint: run the"),
        ("Windows", ("watch", "--", "vllm", "serve", "m"), "supervised on Linux only, and this is Windows. Hint: run"),
        ("Windows", ("up",), "locks and process groups of Linux or macOS, and this is Windows. Hint: run it in WSL 2"),
        ("Windows", ("sweep", "--url", "http://127.0.0.1:1", "--model", "m"), "this is Windows. Hint: run it in WSL 2"),
    ],
)
def test_what_does_not_run_here_is_said(
    system: str, words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, before anything is started or made."""
    monkeypatch.setattr(platform, "system", lambda: system)
    assert main(list(words)) == 2
    assert says in capsys.readouterr().err


def test_servers_of_this_machine_are_refused_by_every_way_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the setting too, not only by the command ``watch``."""
    settings = read_settings({"STORE": f"sqlite:{tmp_path}", "PLATFORM": "host"})
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(InputRejected, match=r"PLATFORM=host was not opened: .*on Linux only"):
        build_app(settings)


@pytest.mark.slow
def test_commands_that_compute_need_nothing_of_unix(tmp_path: Path) -> None:
    """As on Windows: no module and no call of Unix is there."""
    fit = "fit --model google/gemma-3-27b-it --accelerator nvidia-l4"
    advise = "advise --model google/gemma-3-27b-it --accelerator nvidia-l4"
    cost = "cost --model google/gemma-3-27b-it"
    words = (f"classify {ROOT / EVENTS}", f"replay {ROOT / EVENTS}", fit, advise, cost)
    environ = {"PATH": os.environ["PATH"], "STORE": f"sqlite:{tmp_path}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX, *words],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "startup_probe_failed" in done.stdout


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that runs as any user id, as OpenShift's do, has no entry for it."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert user_name() == getpass.getuser()
    program = "import os, pwd; from agent.app.operating_system import user_name; os.setuid(54321); print(user_name())"
    if os.getuid() != 0:
        pytest.skip("only root can become a user without a name")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout == "uid-54321\n", done.stderr


def test_a_user_of_windows_without_a_name_is_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no module pwd, and no number to fall back on; nobody decides in the name of somebody unknown."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "pwd", None)
    monkeypatch.delattr(os, "getuid")
    with pytest.raises(InputRejected, match=r"nobody knows who runs this command\. Hint: set USERNAME, or give --by"):
        user_name()


def test_an_older_python_is_told_so() -> None:
    """From a checkout nothing but this asks; pip refuses a wheel by its metadata."""
    program = "import sys; sys.version_info = (3, 10, 13); import agent"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("sre-agent does not run: this is Python 3.")
    assert "Hint: use Python 3.11 or newer" in done.stderr
