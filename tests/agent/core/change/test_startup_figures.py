"""Figures of a start-up log beside the prediction: which, in which unit, and how far off."""

import pytest

from agent.core.change.startup_figures import GIB, compare_figures

REPORT = {
    "weights_bytes": int(16 * GIB),
    "kv_cache_bytes": int(3 * GIB),
    "kv_tokens": 110_000,
    "num_gpu_blocks": None,
    "max_concurrency": 6.9,
    "overheads": {"cuda_graphs": int(0.3 * GIB), "activations": None},
    "decode_tokens_per_s": 55.0,
    "ranges": {"weights_bytes": [15.5 * GIB, 16.2 * GIB], "kv_tokens": [105_000, 115_000]},
}


def by_name(printed: dict[str, float], report: dict | None = REPORT) -> dict:
    return {f.name: f for f in compare_figures(printed, report)}


def test_sizes_are_compared_in_gib_and_counts_as_they_stand() -> None:
    """The error is a share of what was observed: positive where too much was predicted."""
    found = by_name({"weights_gib": 15.62, "kv_tokens": 113_552, "cuda_graph_gib": 0.25, "max_concurrency": 6.93})
    assert (found["weights_gib"].predicted, found["weights_gib"].observed) == (16.0, 15.62)
    assert found["weights_gib"].off == pytest.approx(16 / 15.62 - 1, abs=1e-4)
    assert found["kv_tokens"].off == pytest.approx(110_000 / 113_552 - 1, abs=1e-4)
    assert found["cuda_graph_gib"].predicted == pytest.approx(0.3, abs=1e-4)
    assert found["max_concurrency"].predicted == 6.9


@pytest.mark.parametrize(
    ("tokens", "inside"),
    [(110_000, True), (115_500, True), (120_000, False), (104_600, True), (99_000, False)],
    ids=["inside", "rounded above", "above", "rounded below", "below"],
)
def test_a_figure_outside_its_range_says_so(tokens: int, inside: bool) -> None:
    """Half a per cent is what printed figures are rounded by."""
    assert by_name({"kv_tokens": tokens})["kv_tokens"].inside is inside


def test_what_was_not_predicted_has_no_error() -> None:
    """Nor has a zero; and what nobody compares is left out."""
    found = by_name({"num_gpu_blocks": 7097, "peak_activation_gib": 0.6, "available_kv_gib": 0, "vllm": 1})
    assert {(f.name, f.predicted, f.off) for f in found.values()} == {
        ("num_gpu_blocks", None, None),
        ("peak_activation_gib", None, None),
        ("available_kv_gib", 3.0, None),
    }
    assert [f.predicted for f in by_name({"weights_gib": 15.6}, None).values()] == [None]
