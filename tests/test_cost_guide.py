"""The commands of the guide to costs do what it says, on a simulated service."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agent.fit.cost.answer import OLD_DAYS
from agent.fit.cost.bill import MONTH_H

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs" / "cost.md").read_text()
(BLOCK,) = re.findall(r"<!-- run by tests/test_cost_guide.py -->\n```\n(.*?)```", GUIDE, re.DOTALL)
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"


@pytest.mark.parametrize("command", BLOCK.strip().splitlines())
def test_a_command_of_the_guide_does_what_it_says(command: str, tmp_path: Path) -> None:
    """It ends with 0, and says where to run it."""
    words = shlex.split(command)
    assert words[0] == "sre-agent"
    done = subprocess.run(
        [sys.executable, "-m", "agent.entrypoints.cli.main", *words[1:]],
        cwd=ROOT,
        env={**os.environ, "STORE": f"sqlite:{tmp_path}", "PLATFORM": f"rehearsal:{EXAMPLE}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"where[ _]to[ _]run", done.stdout)


def test_the_figures_of_the_guide_are_those_of_the_code() -> None:
    assert f"x {MONTH_H}." in GUIDE
    assert f"than {OLD_DAYS} days" in GUIDE
