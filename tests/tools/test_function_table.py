"""The table of the functions: figures of the folder that is deployed, not of the checkout."""

import re
from pathlib import Path

import pytest

from tools.function_table import Row, Start, archive_bytes, rows, table
from tools.stage_functions import functions

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.built
def test_a_function_is_measured_as_it_is_deployed(tmp_path):
    """One round of one function: it loads nothing that its archive does not hold, and fewer modules than the whole."""
    (row,) = rows(["on_tick"], tmp_path, rounds=1)
    held = len(list((tmp_path / "on_tick" / "agent").rglob("*.py")))
    assert 20 < row.start.ours <= held
    assert row.start.modules > row.start.ours
    assert 100 < row.archive_kib < 2000
    assert row.start.cpu_s > 0
    assert row.ratio > 0
    assert archive_bytes(tmp_path / "on_tick") / 1024 == row.archive_kib, "what the build compiles is not uploaded"


def test_the_table_has_one_line_for_each_function():
    start = Start(cpu_s=0.512, modules=1234, ours=99, peak_mib=80.4)
    made = table([Row(function=name, archive_kib=700.4, start=start, ratio=1.126) for name in functions()])
    assert made.splitlines()[2] == "| `console` | 700 KiB | 1,234 (99) | 0.51 s | 1.13 | 80 MiB |"
    assert len(made.splitlines()) == 2 + len(functions())


def test_the_page_has_a_row_for_each_function():
    """docs/before-you-install.md holds the table as the command prints it, and names the command."""
    page = (ROOT / "docs" / "before-you-install.md").read_text()
    assert table([]).splitlines()[0] in page
    shown = re.findall(
        r"^\| `(\w+)` \| \d+ KiB \| [\d,]+ \(\d+\) \| \d\.\d\d s \| \d\.\d\d \| \d+ MiB \|$", page, re.MULTILINE
    )
    assert shown == list(functions())
    assert "`python -m tools.function_table`" in page
