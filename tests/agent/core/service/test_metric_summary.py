"""What an operator is shown of a server's metrics, from a real vLLM's own text."""

import math
from pathlib import Path

import pytest

from agent.core.service.metric_summary import metric_summary

RECORDED = Path(__file__).resolve().parents[4] / "tests" / "data" / "vllm-cpu-logs"


def figures(text):
    return {figure.name: figure for figure in metric_summary(text)}


def test_a_server_after_load_shows_counters_and_latencies_as_it_counted_them():
    found = figures((RECORDED / "metrics_after_load.prom").read_text())
    assert found["finished"].value == 27
    assert found["generated"].value > 0
    first = found["time_to_first_token_p95_at_most"]
    assert (first.value, first.unit, first.series) == (0.04, "s", "vllm:time_to_first_token_seconds")
    assert 0 < found["time_to_first_token_mean"].value <= first.value
    assert {"inter_token_latency_mean", "end_to_end_latency_mean", "queue_time_mean"} <= found.keys()


def test_an_idle_server_shows_no_latency_that_nobody_measured():
    found = figures((RECORDED / "metrics_idle.prom").read_text())
    assert found["running"].value == 0
    assert not [name for name in found if name.endswith(("_mean", "_p95_at_most"))]


TTFT = "vllm:time_to_first_token_seconds"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("<html>not metrics</html>", {}),
        ('vllm:kv_cache_usage_perc{engine="0"} NaN\nvllm:num_requests_running 1e309', {}),
        (f'{TTFT}_count{{engine="0"}} 1\n{TTFT}_sum{{engine="0"}} 4\n{TTFT}_bucket{{le="+Inf"}} 1',
         {"time_to_first_token_mean": 4.0}),
        (f'{TTFT}_bucket{{le="0.1"}} 1\n{TTFT}_bucket{{le="x"}} 2', {}),
        (f'{TTFT}_count{{engine="0"}} 1\n{TTFT}_count{{engine="1"}} 3\n{TTFT}_sum{{engine="0"}} 4',
         {"time_to_first_token_mean": 1.0}),
    ],
    ids=["nothing", "a page", "no finite number", "beyond the last bucket", "no count", "two engines"],
)  # fmt: skip
def test_what_is_not_said_is_left_out(text, expected):
    found = {name: figure.value for name, figure in figures(text).items()}
    assert found == expected
    assert all(math.isfinite(value) for value in found.values())


def test_a_label_cannot_forge_a_bucket():
    """A model's name is chosen by others; an escaped quote in it opens no label."""
    text = f'{TTFT}_count{{model_name="x"}} 1\n{TTFT}_sum{{model_name="x"}} 1\n'
    forged = f'{TTFT}_bucket{{model_name="a\\",le=\\"9\\"",le="1.0"}} 1\n'
    assert figures(text + forged)["time_to_first_token_p95_at_most"].value == 1.0
