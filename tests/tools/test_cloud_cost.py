"""The monthly price: every item by its own arithmetic, both sums, and the page that people read before they install."""

import re
import tomllib
from pathlib import Path

import pytest

from tools.cloud_cost import cost_lines, cost_table, main, monthly_usd

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads((ROOT / "infra" / "monthly_cost.toml").read_text())
TWO = {
    "item": [
        {"what": "decide", "usd": 13.0, "how": "h", "as_of": "d", "cold": {"what": "presses", "usd": 0.5, "how": "c"}},
        {"what": "rest", "usd": 2.25, "how": "r", "as_of": "d"},
    ]
}


def test_both_sums_are_shown():
    """Warm counts what is kept running, cold what stands instead of it; the rest is in both."""
    assert (monthly_usd(TWO, warm=True), monthly_usd(TWO, warm=False)) == (15.25, 2.75)
    lines = [" ".join(line.split()) for line in cost_lines(TWO, endpoint_usd_per_h=1.5)]
    assert lines[2] == "15.25 USD a month with decide kept warm, before free tiers, without what is watched"
    assert lines[3].startswith("2.75 USD a month with decide cold, decide_warm = false in EXTRA_VARS: ")
    assert "0.50 USD for presses (d: c)" in lines[3]
    assert "Slack" in lines[4], "what is lost with it"
    assert "1.50 USD" in lines[5]
    assert cost_table(TWO).splitlines()[2:] == [
        "| decide | 13.00 | 0.50 |",
        "| rest | 2.25 | 2.25 |",
        "| **a month** | **15.25** | **2.75** |",
    ]


def test_one_item_is_cheaper_cold_and_says_why():
    """Only `decide` is kept warm (tests/infra/agreement.py), so only it can be saved; each item says when it was read."""
    (cold,) = [item for item in TABLE["item"] if "cold" in item]
    assert cold["what"].startswith("decide ")
    assert 0 < cold["cold"]["usd"] < cold["usd"]
    assert all(item[key] for item in TABLE["item"] for key in ("what", "how", "source", "as_of"))


ARITHMETIC = {
    "decide kept warm": 730 * 3600 * (0.0000025 + 0.0000025),
    "on_tick": 43_800 * 0.5 * (0.000024 + 0.0000025),
    "900 requests": 300 * 3 * 3 * (0.000024 + 0.0000025),
}


@pytest.mark.parametrize("begins", ARITHMETIC)
def test_the_figure_is_what_its_arithmetic_gives(begins):
    parts = [part for item in TABLE["item"] for part in (item, item.get("cold", {}))]
    (part,) = [part for part in parts if part.get("what", "").startswith(begins)]
    assert part["usd"] == round(ARITHMETIC[begins], 2)


def test_the_page_shows_what_the_command_prints(monkeypatch, capsys):
    """docs/before-you-install.md holds the table, names the command, and the day of every price."""
    monkeypatch.chdir(ROOT)
    assert main(["--markdown"]) == 0
    page = (ROOT / "docs" / "before-you-install.md").read_text()
    (block,) = re.findall(r"<!-- begin generated -->\n(.*?)<!-- end generated -->", page, re.DOTALL)
    assert block == capsys.readouterr().out == cost_table(TABLE) + "\n"
    assert "`python -m tools.cloud_cost --markdown`" in page
    assert all(item["as_of"] in page for item in TABLE["item"])
