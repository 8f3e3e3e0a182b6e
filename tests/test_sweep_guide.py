"""The guide's commands do what it says, on stored sweeps; its sentences are those of the report."""

import pytest

from agent.adapters.load.sweep_folder import store_cell
from agent.core.sweep.target import FIGURES
from tests.agent.core.sweep.served import sweep_of
from tests.guide import ROOT, commands, run

GUIDE = (ROOT / "docs" / "sweep.md").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three stored sweeps of a server made by hand: before, the same again, and with twice the slots."""
    made = tmp_path_factory.mktemp("guide")
    for name, slots, more in (
        ("before", 8, {}),
        ("after", 8, {"rows": {"seed": 2}}),
        ("more-seqs", 16, {"flags": "--max-num-seqs 16"}),
    ):
        cells, rows = sweep_of(slots, grid=(4, 8, 16), **more)
        for cell in cells:
            store_cell(made / "sweeps" / name, cell, rows[cell.id])
    return made


@pytest.mark.guide
@pytest.mark.parametrize("command", commands(GUIDE, "test_sweep_guide"))
def test_a_command_of_the_guide_does_what_it_says(command, folder):
    """It ends with 0, and says something."""
    done = run(command, cwd=folder, STORE=f"sqlite:{folder}/state", HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_figure_of_a_target_is_in_the_guide():
    for figure in FIGURES:
        name, ranked, rank = figure.partition("_p")
        words = (f"`{name}`", f"`_p{rank}`") if ranked and rank.isdecimal() else (f"`{figure}`",)
        assert all(word in GUIDE for word in words), figure


def test_the_sentences_of_the_guide_are_those_of_the_report():
    sentences = (ROOT / "agent" / "presentation" / "sweep" / "sentences.py").read_text()
    for said in ("why is unknown", "prompts wait for other prompts", "no request waits; throughput stops growing"):
        assert said in GUIDE
        assert said in sentences
