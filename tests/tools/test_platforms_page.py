"""The page of platforms is current, and every system of the walk-throughs names what really runs it."""

import re
from pathlib import Path

import pytest

from tests.outside import shared
from tools import platforms_page
from tools.platform_abilities import ABILITIES
from tools.platforms_page import main, page, systems

ROOT = Path(__file__).resolve().parents[2]
SEEDS = {"000": "000_39a2cd322ec80982.txt", "001": "001_1807729c725c899b.txt", "002": "002_259a4307167d6338.txt",
         "003": "003_076a4bfee3792264.txt", "004": "004_e7831c7eb0216e70.txt"}  # fmt: skip


def test_the_committed_page_is_current():
    """Where it is not, run it without --check."""
    assert main(["--check"]) == 0


def test_a_page_that_is_not_current_is_told_and_written(tmp_path, monkeypatch, capsys):
    """The exit code is for scripts, the hint for people."""
    monkeypatch.setattr(platforms_page, "PAGE", tmp_path / "platforms.md")
    platforms_page.PAGE.write_text("old")
    assert main(["--check"]) == 1
    assert "python -m tools.platforms_page" in capsys.readouterr().err
    assert main([]) == 0
    assert platforms_page.PAGE.read_text() == page()
    assert main(["--chek"]) == 2


def test_every_platform_has_a_row_with_a_guide_that_is_there():
    """Seven platforms, each with what it was tested against."""
    rows = re.findall(r"^\| \[`(\w+)`\]\(([^)]+)\)", page(), re.MULTILINE)
    assert [name for name, _ in rows] == list(ABILITIES)
    assert len(rows) == 7
    assert all((ROOT / "docs" / guide).resolve().is_file() for _, guide in rows)
    assert all(said.tested and (said.unproved or name == "rehearsal") for name, said in ABILITIES.items())


def test_there_are_ten_systems():
    rows = systems()
    assert len({row["system"] for row in rows}) == len(rows) == 10
    assert {row["seed"] for row in rows} == set(SEEDS)


@pytest.mark.parametrize("row", systems(), ids=lambda row: row["system"])
def test_a_system_names_what_runs_it(row):
    """The journey and the examples exist; only what is the same failure claims an example."""
    for test in row["tests"]:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
    assert all((ROOT / "examples" / name / "expected.json").is_file() for name in row["examples"])
    assert bool(row["examples"]) is row["same"]
    assert ABILITIES[row["platform"]].unproved


@pytest.mark.parametrize("row", systems(), ids=lambda row: row["system"])
def test_the_walk_through_names_the_system(row):
    """Where the texts are at hand."""
    assert row["says"] in shared("seeds", SEEDS[row["seed"]]).read_text(encoding="utf-8")
