"""The sums of docs/seeds-checked.md: each comes to what is said, and holds or does not as is said."""

import ast
import json
import operator
import re
from pathlib import Path

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.entrypoints.cli.main import main
from agent.fit.flags.flags import Flags
from agent.fit.speed.speed import decode_speed
from tests.outside import shared

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "seeds-checked.md").read_text()
ROW = re.compile(r"^\| (.+) \| `(.+)` \| ([\d.]+) \| ([\d.]+) \| (holds|does not hold) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)
DO = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: pow}
SEEDS = {
    "000": "000_39a2cd322ec80982.txt",
    "001": "001_1807729c725c899b.txt",
    "002": "002_259a4307167d6338.txt",
    "004": "004_e7831c7eb0216e70.txt",
}
BY_NAME = {shape.name: shape for shape in load_platform_catalogue().shapes}


def computed(text: str) -> float:
    """The value of a sum of numbers; nothing else is evaluated."""

    def of(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            return DO[type(node.op)](of(node.left), of(node.right))
        assert isinstance(node, ast.Constant)
        assert isinstance(node.value, int | float)
        return node.value

    return of(ast.parse(text, mode="eval").body)


def rounding(figure: str) -> float:
    """One unit of the last digit that is given: texts cut figures off as often as they round them."""
    return 10 ** -len(figure.partition(".")[2])


@pytest.mark.parametrize(("claim", "total", "comes_to", "claimed", "verdict"), ROWS, ids=[row[0] for row in ROWS])
def test_a_sum_comes_to_what_is_said_and_the_verdict_follows(claim, total, comes_to, claimed, verdict):
    """Holds: within the rounding of the claim, or 6 % for a mean wait, which a burst's first answers shift."""
    found = computed(total)
    assert found == pytest.approx(float(comes_to), abs=rounding(comes_to) / 2 * 1.01)
    room = 0.06 * found if total.endswith("/ 2") else rounding(claimed) * 1.01
    assert (verdict == "holds") == (abs(found - float(claimed)) <= room)


def test_the_page_has_its_rows():
    assert len(ROWS) == PAGE.count("| holds |") + PAGE.count("| does not hold |") == 62


def plain(figure: str) -> str:
    """A figure without the zeros that it is filled up with."""
    return figure.rstrip("0").rstrip(".") if "." in figure else figure


@pytest.mark.parametrize("number", SEEDS)
def test_a_claimed_figure_stands_in_the_text(number):
    """Read where the texts are at hand; thousands are written with a comma or a tilde there."""
    text = shared("seeds", SEEDS[number]).read_text(encoding="utf-8").replace(",", "")
    part = PAGE.partition(f"## {number}: ")[2].partition("\n## ")[0]
    rows = ROW.findall(part)
    assert len(rows) >= 10
    missing = [claimed for *_, claimed, _ in rows if plain(claimed) not in text]
    assert missing == []


@pytest.mark.parametrize(
    ("shape", "claimed"), [("container-apps-a100", 8.86), ("cloud-run-l4-small", 1.05), ("container-apps-t4", 2.22)]
)
def test_our_prices_are_those_of_the_page(shape, claimed):
    assert BY_NAME[shape].usd_per_h == pytest.approx(claimed, abs=0.005)


def test_our_speed_of_12b_on_an_l4_is_below_the_claim_and_that_of_26b_holds():
    """80 tokens/s are outside of the range, 61.67 inside."""
    fit = load_fit_catalogue()
    card, rules = fit.accelerator("nvidia-l4"), fit.rules("0.23")
    small = decode_speed(fit.models.find("google/gemma-4-12B-it-qat-w4a16-ct"), card, Flags(), rules)
    large = decode_speed(fit.models.find("google/gemma-4-26B-A4B-it-qat-w4a16-ct"), card, Flags(), rules)
    assert small.high < 34 < 80
    assert large.low <= 61.67 <= large.high


FORUM = (
    "--max-num-batched-tokens 1024 --language-model-only --max-num-seqs 1 --max-model-len 1024 --kv-cache-dtype fp8"
    " --tensor-parallel-size 2"
)


@pytest.mark.parametrize(
    ("model", "card", "count", "flags", "weights_gib", "transient_gib", "reason"),
    [
        ("google/gemma-4-31B-it-qat-w4a16-ct", "nvidia-l4", 1, "--max-model-len 8192", 19.68, 2.62, "load_peak"),
        ("google/gemma-4-26B-A4B-it-qat-w4a16-ct", "nvidia-l4", 1, "--max-model-len 8192", 15.73, 1.38, "fits"),
        ("nvidia/Gemma-4-31B-IT-NVFP4", "nvidia-rtx-5070-ti", 2, FORUM, 15.2, 1.31, "load_peak"),
    ],
    ids=["000: 31B", "000: 26B", "003"],
)
def test_what_the_page_says_of_fit_is_what_it_says(
    capsys, model, card, count, flags, weights_gib, transient_gib, reason
):
    main(["fit", "--model", model, "--accelerator", card, "--count", str(count), "--flags", flags, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["reason"] == reason
    assert said["weights_bytes"] / 2**30 == pytest.approx(weights_gib, abs=0.05)
    assert said["overheads"]["load_transient"] / 2**30 == pytest.approx(transient_gib, abs=0.01)
