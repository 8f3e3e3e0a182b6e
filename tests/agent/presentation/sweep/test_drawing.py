"""Axes have round numbers that hold every value, and no text becomes markup."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.presentation.sweep.drawing import powers, round_steps, safe, svg, words


@pytest.mark.parametrize(
    ("highest", "steps"),
    [(764, (0, 200, 400, 600, 800)), (10, (0, 5, 10)), (0.011, (0, 0.005, 0.01, 0.015)), (1, (0, 0.5, 1))],
)
def test_steps_are_round(highest, steps):
    assert round_steps(highest) == pytest.approx(steps)


@given(st.floats(1e-6, 1e9))
def test_the_last_step_holds_the_highest_value_and_is_not_far(highest):
    steps = round_steps(highest)
    assert steps[0] == 0
    assert highest <= steps[-1] * (1 + 1e-6)
    assert steps[-1] <= 2.5 * highest
    assert len(steps) <= 6


@given(st.floats(1e-5, 1e3), st.floats(1, 1e5))
def test_powers_hold_both_ends(lowest, ratio):
    steps = powers(lowest, lowest * ratio)
    assert steps[0] <= lowest * (1 + 1e-9)
    assert steps[-1] >= lowest * ratio * (1 - 1e-9)
    assert len(steps) >= 1


@given(st.text(max_size=200))
def test_any_text_stays_text(text):
    drawn = svg(10, 10, title=text, inside=words(1, 1, text))
    root = ET.fromstring(drawn)
    assert {child.tag.rpartition("}")[2] for child in root.iter()} <= {"svg", "style", "title", "text"}
    assert "://" not in safe(text)
