"""The commands of the guide to costs do what it says, on a simulated service."""

import re
from pathlib import Path

import pytest

from agent.fit.cost.answer import OLD_DAYS
from agent.fit.cost.bill import MONTH_H
from tests.guide import ROOT, commands, run

GUIDE = (ROOT / "docs" / "cost.md").read_text()


@pytest.mark.guide
@pytest.mark.parametrize("command", commands(GUIDE, "test_cost_guide"))
def test_a_command_of_the_guide_does_what_it_says(command: str, tmp_path: Path) -> None:
    """It ends with 0, and says where to run it."""
    done = run(command, STORE=f"sqlite:{tmp_path}")
    assert done.returncode == 0, done.stderr
    assert re.search(r"where[ _]to[ _]run", done.stdout)


def test_the_figures_of_the_guide_are_those_of_the_code() -> None:
    assert f"x {MONTH_H}." in GUIDE
    assert f"than {OLD_DAYS} days" in GUIDE
