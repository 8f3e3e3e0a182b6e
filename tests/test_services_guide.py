"""The guide's commands do what it says, on a simulated service; its examples are valid."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agent.core.decision.policy import parse_policy
from agent.core.service.services import parse_services

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs" / "services.md").read_text()
(BLOCK,) = re.findall(r"<!-- run by tests/test_services_guide.py -->\n```\n(.*?)```", GUIDE, re.DOTALL)
TOML = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"


@pytest.mark.parametrize("command", BLOCK.strip().splitlines())
def test_a_command_of_the_guide_does_what_it_says(command: str, tmp_path: Path) -> None:
    """It ends with 0, and says something."""
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
    assert done.stdout.strip()


def test_the_declared_block_and_the_policy_of_the_guide_are_valid() -> None:
    """Whoever copies them gets no mistake."""
    declared, policy = TOML
    (service,) = parse_services((EXAMPLE / "services.toml").read_text() + declared).services
    assert service.declared is not None
    assert service.declared.max_instances == 2
    assert parse_policy(policy).lifecycle == tuple(tomllib.loads(policy)["lifecycle"])


def test_every_condition_is_explained() -> None:
    for condition in ("ready", "starting", "not ready", "stopping", "stopped", "not deployed", "unknown"):
        assert f"`{condition}`" in GUIDE, condition
