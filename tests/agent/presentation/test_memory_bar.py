"""The memory bar shows what was computed, and that it does not fit when it does not."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app.catalogues import read_capacity
from agent.core.service.services import parse_services
from agent.fit.bounds import GIB, Bounds
from agent.fit.report import FitReason, FitReport, Overheads
from agent.presentation.memory_bar import memory_bar, segments, svg_bar, text_bar

TPU = Path(__file__).resolve().parents[3] / "examples" / "gemma4-e2b-tpu-v6e-hbm"


def test_parts_and_free_memory_sum_to_the_device(ask):
    report = ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192")
    assert sum(part.bytes for part in segments(report)) == report.total_bytes.best
    assert [part.name for part in segments(report)] == [
        "weights",
        "KV cache",
        "activations",
        "CUDA graphs",
        "overhead",
        "free",
    ]


def test_a_failed_load_shows_the_transient_and_what_is_short(ask):
    report = ask("google/gemma-4-31B-it-qat-w4a16-ct", "nvidia-l4", "--max-model-len 4096 --kv-cache-dtype fp8")
    bar = text_bar(report)
    assert "load transient" in bar
    assert "short" in bar
    assert "KV cache" not in bar


def test_colours_are_only_for_terminals(ask):
    report = ask("Qwen/Qwen3-8B", "nvidia-l4")
    assert "\x1b[" not in text_bar(report)
    assert "\x1b[" in text_bar(report, colour=True)


numbers = st.integers(0, 100 * GIB).map(Bounds.exactly)


@given(numbers, numbers, numbers, numbers, numbers, numbers, st.sampled_from(list(FitReason)))
def test_any_report_becomes_well_formed_svg_within_its_width(weights, kv, transient, activations, other, total, reason):
    report = FitReport(
        fits=None, reason=reason, weights_bytes=weights, kv_cache_bytes=kv, total_bytes=total,
        overheads=Overheads(load_transient=transient, activations=activations, non_torch=other),
    )  # fmt: skip
    root = ET.fromstring(svg_bar(report, width=600))
    names = {"s": "http://www.w3.org/2000/svg"}
    for shape in root.findall("s:rect", names):
        assert float(shape.get("x")) + float(shape.get("width")) <= 600.2
    bar = text_bar(report).splitlines()[0]
    assert bar.startswith("[")
    assert len(bar.partition("]")[0]) <= 65


def test_a_device_of_unknown_size_has_no_end_in_the_drawing():
    drawn = svg_bar(FitReport(fits=None, reason=FitReason.UNKNOWN, weights_bytes=Bounds.exactly(10 * GIB)))
    assert "On a device of unknown size: weights 10.00 GiB" in drawn
    assert "<line" not in drawn


def test_the_label_at_the_end_of_the_bar_says_what_ends_there(ask):
    """A need beyond the device: the bar ends where the need does, and the mark is where the device ends."""
    fits = ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192")
    assert text_bar(fits).splitlines()[0].endswith("] 22.03 GiB")
    beyond = ask("google/gemma-4-31B-it-qat-w4a16-ct", "nvidia-l4", "--max-model-len 4096 --kv-cache-dtype fp8")
    line = text_bar(beyond).splitlines()[0]
    assert "|" in line.partition("]")[0]
    assert line.endswith("| is the end of the device, 22.03 GiB")
    assert "22.03 GiB needed" not in line


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
