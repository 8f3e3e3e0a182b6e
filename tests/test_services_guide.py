"""The guide's commands do what it says, on a simulated service; its examples are valid."""

import re
import tomllib
from pathlib import Path

import pytest

from agent.core.decision.policy import parse_policy
from agent.core.service.services import parse_services
from tests.guide import EXAMPLE, ROOT, commands, run

GUIDE = (ROOT / "docs" / "services.md").read_text()
TOML = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.guide
@pytest.mark.journey
@pytest.mark.parametrize("command", commands(GUIDE, "test_services_guide"))
def test_a_command_of_the_guide_does_what_it_says(command: str, tmp_path: Path) -> None:
    """It ends with 0, and says something."""
    done = run(command, STORE=f"sqlite:{tmp_path}")
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
