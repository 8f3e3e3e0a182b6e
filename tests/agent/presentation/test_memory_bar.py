"""The memory bar shows what was computed, and that it does not fit when it does not."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from agent.fit.bounds import GIB, Bounds
from agent.fit.report import FitReason, FitReport, Overheads
from agent.presentation.memory_bar import segments, svg_bar, text_bar, text_report


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


def test_people_read_verdict_tokens_and_assumptions(ask):
    told = text_report(
        ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192"), model="Qwen/Qwen3-8B", accelerator="nvidia-l4"
    )
    assert told.startswith("Qwen/Qwen3-8B on nvidia-l4: fits (fits)")
    assert "requests of 8,192 tokens" in told
    assert "assumed: nothing else uses the device" in told


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


def test_the_label_at_the_end_of_the_bar_says_what_ends_there(ask):
    """A need beyond the device: the bar ends where the need does, and the mark is where the device ends."""
    fits = ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192")
    assert text_bar(fits).splitlines()[0].endswith("] 22.03 GiB")
    beyond = ask("google/gemma-4-31B-it-qat-w4a16-ct", "nvidia-l4", "--max-model-len 4096 --kv-cache-dtype fp8")
    line = text_bar(beyond).splitlines()[0]
    assert "|" in line.partition("]")[0]
    assert line.endswith("| is the end of the device, 22.03 GiB")
    assert "22.03 GiB needed" not in line
