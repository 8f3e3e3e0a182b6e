"""`make reset` removes the state that it names, and nothing else, whatever STATE says."""

import fcntl
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def reset(state) -> subprocess.CompletedProcess[str]:
    """Run it with a virtual environment that is not there: it must need none."""
    return subprocess.run(
        ["make", "-s", "reset", f"STATE={state}", "VENV=/nowhere"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    for name in ("sre.sqlite", "control.sqlite", "process.lock"):
        (folder / name).write_text("")
    return folder


def test_it_says_what_it_removes_and_removes_that(state, tmp_path):
    (tmp_path / "beside").write_text("stays")
    done = reset(state)
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("sre.sqlite", "control.sqlite"))
    assert [p.name for p in tmp_path.iterdir()] == ["beside"]
    assert "nothing to remove" in reset(state).stdout


def test_a_state_at_work_stays(state):
    with (state / "process.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        done = reset(state)
    assert done.returncode != 0
    assert "Stop it first" in done.stdout
    assert (state / "sre.sqlite").exists()


@pytest.mark.parametrize("what", ["/", ".", ""], ids=["root", "here", "empty"])
def test_what_is_no_state_stays(what):
    done = reset(what)
    assert "remov" in done.stdout
    assert "removing" not in done.stdout
    assert (ROOT / "Makefile").exists()


def test_a_folder_of_somebody_else_stays(tmp_path):
    (tmp_path / "thesis.txt").write_text("years")
    done = reset(tmp_path)
    assert "holds no state of the agent" in done.stdout
    assert (tmp_path / "thesis.txt").exists()
