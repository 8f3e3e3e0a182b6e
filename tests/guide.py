"""The commands of a guide, run as its reader runs them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"


def commands(guide: str, test: str) -> list[str]:
    """Return the lines of the blocks that name a test."""
    blocks = re.findall(rf"<!-- run by tests/{test}.py -->\n```\n(.*?)```", guide, re.DOTALL)
    assert blocks, f"no block names {test}"
    return [line for block in blocks for line in block.strip().splitlines()]


def run(command: str, *, cwd: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of ``sre-agent``, on a simulated service unless the environment says otherwise."""
    words = shlex.split(command)
    assert words[0] == "sre-agent"
    return subprocess.run(
        [sys.executable, "-m", "agent.entrypoints.cli.main", *words[1:]],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PLATFORM": f"rehearsal:{EXAMPLE}", **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
