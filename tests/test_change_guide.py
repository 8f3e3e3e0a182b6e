"""The guide's commands do what it says, on a simulated service."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs" / "change.md").read_text()
BLOCKS = re.findall(r"(?:<!-- (refused: )?run by tests/test_change_guide.py -->\n)?```\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = [(line, bool(refused)) for refused, block in BLOCKS for line in block.strip().splitlines()]


@pytest.mark.parametrize(("command", "refused"), COMMANDS, ids=lambda value: value if isinstance(value, str) else None)
def test_a_command_of_the_guide_does_what_it_says(command: str, refused: bool, tmp_path: Path) -> None:
    """It ends with the code that the guide gives, and says something."""
    words = shlex.split(command)
    assert words[0] == "sre-agent"
    done = subprocess.run(
        [sys.executable, "-m", "agent.entrypoints.cli.main", *words[1:]],
        cwd=ROOT,
        env={**os.environ, "STORE": f"sqlite:{tmp_path}", "PLATFORM": "rehearsal:examples/gemma4-26b-l4-startup-probe"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == int(refused), done.stderr
    assert ("this does: " in done.stderr) if refused else done.stdout.strip()


def test_every_option_of_the_command_is_in_the_guide() -> None:
    from agent.entrypoints.cli.commands.change import REPEATED, WHOLE

    options = [name for name, *_ in (*REPEATED, *WHOLE)]
    for option in (*options, "--restart", "--confirm", "--why", "--supersede", "--dry-run"):
        assert option in GUIDE, option
