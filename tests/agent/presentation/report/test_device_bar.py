"""The bar shows what stands in the report, to scale, and never more than it knows."""

from pathlib import Path

import pytest

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_capacity
from agent.core.service.services import parse_services
from agent.presentation.report.device_bar import memory_bar

GIB = 2**30
TPU = Path(__file__).resolve().parents[4] / "examples" / "gemma4-e2b-tpu-v6e-hbm"


def report(**changes):
    made = {
        "fits": True,
        "reason": "fits",
        "weights_bytes": 10 * GIB,
        "kv_cache_bytes": 4 * GIB,
        "overheads": {"load_transient": 3 * GIB, "activations": GIB, "non_torch": GIB, "cuda_graphs": GIB},
        "budget_bytes": 18 * GIB,
        "total_bytes": 20 * GIB,
        "shortfall_bytes": 0,
    }
    return made | changes


def test_parts_fill_the_bar_to_scale():
    bar = memory_bar(report())
    assert [(p.kind, p.gib, p.width) for p in bar.parts] == [
        ("weights", 10, 500),
        ("activations", 1, 50),
        ("graphs", 1, 50),
        ("other", 1, 50),
        ("cache", 4, 200),
        ("free", 3, 150),
    ]
    assert sum(p.width for p in bar.parts) == pytest.approx(1000)
    assert (bar.end_x, bar.budget_x, bar.short_gib) == (1000, 900, 0)


def test_where_loading_fails_the_transient_is_shown_and_the_end_of_the_device_marked():
    bar = memory_bar(report(reason="load_peak", fits=False, weights_bytes=19 * GIB, shortfall_bytes=3 * GIB))
    assert [p.kind for p in bar.parts] == ["weights", "transient", "other"]
    assert bar.end_x == pytest.approx(20 / 23 * 1000)
    assert bar.says.endswith("; 3.00 GiB are missing")


@pytest.mark.parametrize(
    "known",
    [None, {}, report(total_bytes=None), report(weights_bytes=None), report(total_bytes=0), report(total_bytes="20"),
     report(weights_bytes=True), report(weights_bytes=-1), report(total_bytes=float("nan")), report(total_bytes=2**61)],
    ids=["none", "empty", "no total", "no weights", "zero", "text", "a switch", "negative", "no number", "absurd"],
)  # fmt: skip
def test_what_is_not_known_is_not_drawn(known):
    assert memory_bar(known) is None


def test_missing_overheads_leave_gaps_not_guesses():
    bar = memory_bar(report(overheads=None, kv_cache_bytes=None))
    assert [p.kind for p in bar.parts] == ["weights", "free"]


def test_the_hbm_of_a_tpu_is_drawn_from_the_fit():
    """The recorded failure on a v6e: each chip's weights and cache leave less than a GiB of 31.25."""
    capacity = read_capacity(parse_services((TPU / "services.toml").read_text()))
    scenario = load_scenario(TPU / "scenario.toml")
    bar = memory_bar(capacity.assess(scenario.service, scenario.live.config).report)
    assert {"weights", "cache"} <= {part.kind for part in bar.parts}
    assert bar.total_gib == pytest.approx(31.25)
    assert next(part.gib for part in bar.parts if part.kind == "free") < 1
