"""The README's commands do what it says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCK = re.search(r"<!-- run by tests/test_readme.py -->\n```\n(.*?)```", README, re.DOTALL)
COMMANDS = BLOCK.group(1).strip().splitlines() if BLOCK else []
ENDS = {"classify": {0}, "replay": {1}, "fit": {1}, "advise": {0, 1}, "incidents": {0}}


def test_the_readme_has_commands_to_run() -> None:
    """The marked block is there."""
    assert len(COMMANDS) >= 5


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_runs(command: str, tmp_path: Path) -> None:
    """It ends as the contract says, says something, and shows no traceback."""
    words = shlex.split(command)
    assert words[0] == "sre-agent"
    done = subprocess.run(
        [sys.executable, "-m", "agent.entrypoints.cli.main", *words[1:]],
        cwd=ROOT,
        env={**os.environ, "STORE": f"sqlite:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in ENDS[words[1]], done.stderr
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make (\w+)", README))))
def test_a_make_target_of_the_readme_exists(target: str) -> None:
    """`make run`, `make test`, `make install` are targets."""
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([\w./-]+)\)", README))))
def test_a_link_of_the_readme_leads_somewhere(link: str) -> None:
    """Every relative link is a file."""
    assert (ROOT / link).exists()
