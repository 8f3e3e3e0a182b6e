"""The guide's commands do what it says, on a simulated service."""

import re
from pathlib import Path

import pytest

from tests.guide import ROOT, run

GUIDE = (ROOT / "docs" / "change.md").read_text()
END = {"": (0, ""), "refused": (1, "this does: "), "by hand": (2, "by hand: gcloud run services update")}
"""How the commands of a block end, by what stands above it: exit code, and what is said."""
BLOCKS = re.findall(r"(?:<!-- (?:([a-z ]+): )?run by tests/test_change_guide.py -->\n)?```\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = [(line, END[how]) for how, block in BLOCKS for line in block.strip().splitlines()]


@pytest.mark.guide
@pytest.mark.parametrize(("command", "end"), COMMANDS, ids=lambda value: value if isinstance(value, str) else None)
def test_a_command_of_the_guide_does_what_it_says(command: str, end: tuple[int, str], tmp_path: Path) -> None:
    """It ends with the code that the guide gives, and says something."""
    done = run(command, STORE=f"sqlite:{tmp_path}")
    code, says = end
    assert done.returncode == code, done.stderr
    assert (says in done.stderr) if code else done.stdout.strip()


def test_every_option_of_the_command_is_in_the_guide() -> None:
    from agent.entrypoints.cli.commands.change import REPEATED, WHOLE

    options = [name for name, *_ in (*REPEATED, *WHOLE)]
    for option in (*options, "--restart", "--confirm", "--why", "--supersede", "--dry-run"):
        assert option in GUIDE, option
