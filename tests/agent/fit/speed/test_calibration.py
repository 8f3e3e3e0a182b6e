"""Ranges rest on three measurements that agree, and on none of another family, card or version."""

import pytest

from agent.fit.speed.calibration import Kind, Measurement, calibrated, calibrations, minor


def measured(number, value, **changes):
    base = {
        "id": f"m-{number}", "kind": Kind.BANDWIDTH_SHARE, "family": "gemma-4", "accelerator": "nvidia-l4",
        "vllm": "0.32", "value": value, "at": f"2026-11-{number:02}", "model": "m", "source": "a sweep",
    }  # fmt: skip
    return Measurement(**{**base, **changes})


def asked(measurements, **changes):
    like = {"family": "gemma-4", "accelerator": "nvidia-l4", "vllm": "0.32.0", **changes}
    return calibrated(measurements, Kind.BANDWIDTH_SHARE, **like)


THREE = [measured(1, 0.60), measured(2, 0.66), measured(3, 0.63)]


def test_three_that_agree_give_a_range_with_a_tenth_on_both_sides():
    assert asked(THREE) == pytest.approx((0.54, 0.726))


@pytest.mark.parametrize(
    ("measurements", "why"),
    [
        pytest.param(THREE[:2], "2 of the 3 that must agree", id="too few"),
        pytest.param([*THREE, measured(4, 0.40)], "more than a factor of 1.3: 0.4 to 0.66", id="they differ"),
        pytest.param([*THREE[:2], measured(3, 0.0)], "more than a factor", id="nothing was measured"),
    ],
)
def test_otherwise_there_is_none_and_the_reason_is_said(measurements, why):
    (found,) = calibrations(measurements)
    assert found.range is None
    assert why in found.why_not
    assert asked(measurements) is None


@pytest.mark.parametrize(
    "other", [{"family": "qwen3"}, {"accelerator": "nvidia-a10g"}, {"vllm": "0.31"}, {"storage": "disk"}], ids=str
)
def test_what_is_not_alike_does_not_count(other):
    assert asked([*THREE[:2], measured(3, 0.63, **other)]) is None
    assert asked(THREE, **other) is None


def test_a_calibration_holds_for_a_minor_version():
    assert [minor(version) for version in ("v0.32.0", "0.32", "0.32.1rc1")] == ["0.32"] * 3
